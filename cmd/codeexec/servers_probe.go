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
name, all that aren't disabled. The time is that from the start to the list.

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
			fmt.Fprintln(table, "NAME\tSTATUS\tTOOLS\tTIME")
			for _, p := range probes {
				status, tools := "ok", strconv.Itoa(p.tools)
				if p.err != nil {
					status, tools = "failed", "-"
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.name, status, tools, milliseconds(p.took))
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
	name  string
	tools int
	took  time.Duration
	err   error
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
			start := time.Now()
			tools, err := manager.Refresh(ctx, name)
			probes[i] = probe{name, len(tools), time.Since(start), err}
		})
	}
	running.Wait()
	return probes
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
