package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"codeexec/bridge/config"
	"codeexec/bridge/upstream"
)

func newDoctorCommand(std streams, env environment) *cobra.Command {
	var (
		flags     serverFlags
		startThem bool
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that codeexec needs",
		Long: `Check everything that codeexec needs: its Python, its directories, its
configuration, and the MCP clients that have it installed; and with --servers, by
starting them, the MCP servers that scripts may call. For each failure the table
is followed by what to do.

The exit code is 1 if something has failed.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			d := doctor{}
			if err := d.examine(cmd, env, &flags, startThem); err != nil {
				return err
			}
			if err := d.print(std.out); err != nil {
				return err
			}
			if d.failed() {
				return exitStatus(exitFailure)
			}
			return nil
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&startThem, "servers", false, "also start each server, and list its tools")
	return cmd
}

// The grades of a finding.
const (
	gradeOK     = "ok"
	gradeNote   = "note" // good to know, but nothing is broken
	gradeFailed = "failed"
)

// A finding is what a check has found.
type finding struct {
	check, grade, detail string
	remedy               string // what to do; empty if there is nothing to do
}

// A doctor collects findings.
type doctor struct{ findings []finding }

func (d *doctor) ok(check, format string, args ...any) {
	d.findings = append(d.findings, finding{check, gradeOK, fmt.Sprintf(format, args...), ""})
}

func (d *doctor) note(check, detail, remedy string) {
	d.findings = append(d.findings, finding{check, gradeNote, detail, remedy})
}

func (d *doctor) fail(check, detail, remedy string) {
	d.findings = append(d.findings, finding{check, gradeFailed, detail, remedy})
}

func (d *doctor) failed() bool {
	for _, f := range d.findings {
		if f.grade == gradeFailed {
			return true
		}
	}
	return false
}

// examine makes all checks, each of which stands for itself.
func (d *doctor) examine(cmd *cobra.Command, env environment, flags *serverFlags, startServers bool) error {
	ctx := cmd.Context()
	settings, warnings := env.read(slog.LevelError)
	opts, err := flags.options(cmd, settings)
	if err != nil {
		return err
	}
	d.program()
	for _, w := range warnings {
		d.fail("environment", w.Error(), "correct the variable, or unset it")
	}
	if d.python() {
		d.sandbox(ctx, settings)
	}
	d.cache(settings)
	d.state(settings)
	set, err := config.Load(ctx, opts)
	if err != nil {
		return err
	}
	d.configuration(set)
	if startServers {
		if err := d.servers(ctx, settings, set); err != nil {
			return err
		}
	}
	for _, client := range config.Clients() {
		d.client(client, opts)
	}
	return context.Cause(ctx)
}

// servers starts each server.
func (d *doctor) servers(ctx context.Context, s settings, set config.Set) (err error) {
	manager := openManager(s, set, slog.New(slog.DiscardHandler))
	defer func() { err = errors.Join(err, closeManager(ctx, manager)) }()
	var names []string
	for _, info := range manager.Servers() {
		if info.Status != upstream.StatusDisabled {
			names = append(names, info.Name)
		}
	}
	for _, p := range probeAll(ctx, manager, names) {
		check := "server " + p.name
		if p.err != nil {
			d.fail(check, p.status(), p.err.Error())
			continue
		}
		d.ok(check, "%d tools in %s", p.tools, milliseconds(p.timing.Total()))
	}
	return nil
}

// print prints a table, and what to do below.
func (d *doctor) print(w io.Writer) error {
	table := newTable(w)
	fmt.Fprintln(table, "CHECK\tSTATUS\tDETAIL")
	for _, f := range d.findings {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.check, f.grade, f.detail)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, section := range []struct{ grade, title string }{{gradeFailed, "What to do:"}, {gradeNote, "Notes:"}} {
		title := "\n" + section.title + "\n"
		for _, f := range d.findings {
			if f.grade == section.grade && f.remedy != "" {
				fmt.Fprintf(w, "%s  %s: %s\n", title, f.check, strings.ReplaceAll(f.remedy, "\n", "\n    "))
				title = ""
			}
		}
	}
	return nil
}
