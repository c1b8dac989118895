package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"codeexec/bridge/upstream"
)

// probesAtOnce is how many servers are started side by side.
const probesAtOnce = 8

func newServersTestCommand(std streams, env environment) *cobra.Command {
	var flags serverFlags
	cmd := &cobra.Command{
		Use:   "test [NAME...]",
		Short: "Start servers, and list their tools",
		Long: `Start servers, greet them, list their tools, and stop them again; without a
name, all that aren't disabled. The times are those of the three phases: the
start of the process, the handshake, which is over once the server has loaded
itself and answered, and the list of its tools.

The exit code is 1 if a server can't be used.`,
		RunE: func(cmd *cobra.Command, names []string) (err error) {
			ctx := cmd.Context()
			settings, warnings := env.read(slog.LevelError) // a failure is shown anyway
			logger := newLogger(std.err, settings, warnings)
			set, err := flags.load(cmd, settings, logger, true)
			if err != nil {
				return err
			}
			manager := openManager(settings, set, logger)
			defer func() { err = errors.Join(err, closeManager(ctx, manager)) }()
			if len(names) == 0 {
				for _, info := range manager.Servers() {
					if info.Status != upstream.StatusDisabled {
						names = append(names, info.Name)
					}
				}
			}
			probes := probeAll(ctx, manager, names)
			if err := context.Cause(ctx); err != nil {
				return err
			}
			table := newTable(std.out)
			fmt.Fprintln(table, "NAME\tSTATUS\tTOOLS\tSTART\tHANDSHAKE\tLIST\tTOTAL")
			for _, p := range probes {
				fmt.Fprintln(table, strings.Join(p.row(), "\t"))
			}
			if err := table.Flush(); err != nil {
				return err
			}
			if !slices.ContainsFunc(probes, func(p probe) bool { return p.err != nil }) {
				return nil
			}
			for _, p := range probes {
				if p.err != nil {
					fmt.Fprintf(std.err, "codeexec: %s\n", strings.ReplaceAll(p.err.Error(), "\n", "\n  "))
				}
			}
			return exitStatus(exitFailure)
		},
	}
	flags.register(cmd)
	return cmd
}

// A probe is what became of one server.
type probe struct {
	name   string
	tools  int
	timing upstream.Timing
	err    error
}

// status says in a word or two how far it got.
func (p probe) status() string {
	switch {
	case p.err == nil:
		return "ok"
	case p.timing.Failed == "":
		return "failed"
	}
	return p.timing.Failed + " failed"
}

// row returns the line of the table. Phases that weren't reached have no time.
func (p probe) row() []string {
	tools, reached := strconv.Itoa(p.tools), 3
	if p.err != nil {
		reached = slices.Index([]string{upstream.PhaseStart, upstream.PhaseHandshake, upstream.PhaseList}, p.timing.Failed) + 1
		tools = "-"
	}
	row := []string{p.name, p.status(), tools}
	for i, took := range []time.Duration{p.timing.Start, p.timing.Handshake, p.timing.List} {
		if i < reached {
			row = append(row, milliseconds(took))
		} else {
			row = append(row, "-")
		}
	}
	return append(row, milliseconds(p.timing.Total()))
}

// probeAll starts servers, in any order, and returns the outcomes in that of names.
func probeAll(ctx context.Context, manager *upstream.Manager, names []string) []probe {
	probes := make([]probe, len(names))
	slots := make(chan struct{}, probesAtOnce)
	var running sync.WaitGroup
	for i, name := range names {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			tools, timing, err := manager.Probe(ctx, name)
			probes[i] = probe{name, len(tools), timing, err}
		})
	}
	running.Wait()
	return probes
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
