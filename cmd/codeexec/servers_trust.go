package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"codeexec/bridge/config"
)

func newServersTrustCommand(std streams, env environment) *cobra.Command {
	var dryRun, revoke bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let the servers of a project be used in its directory",
		Long: `Let the servers that the files of a project define be used in its directory,
by default the working directory, and show them. They are started as programs of
yours, with your rights: look at them first, with --dry-run.

The files count as long as they stay as they are, and the files of variables that
they name too. After a change, or when a further one appears, this has to be said
again. The programs that they name are not looked at.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef(cmd, "one directory at a time: %q is too much", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			settings, warnings := env.read(slog.LevelWarn)
			newLogger(std.err, settings, warnings)
			if revoke {
				known, err := config.RevokeTrust(settings.stateDir, dir)
				if err == nil && !known {
					err = fmt.Errorf("%s was not trusted", dir)
				}
				return err
			}
			project, err := config.InspectProject(cmd.Context(), config.Options{StateDir: settings.stateDir}, dir)
			if err != nil {
				return usagef(cmd, "%w", err)
			}
			if len(project.Files) == 0 {
				return fmt.Errorf("%s has no files that define servers", project.Dir)
			}
			if err := printProject(std.out, project); err != nil {
				return err
			}
			if dryRun {
				fmt.Fprintln(std.out, "\nNothing was remembered.")
				return nil
			}
			if err := project.Trust(settings.stateDir); err != nil {
				return err
			}
			fmt.Fprintf(std.out, "\n%s is trusted as it is.\n", project.Dir)
			return nil
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the servers, but don't trust them")
	cmd.Flags().BoolVar(&revoke, "revoke", false, "don't trust the project any more")
	return cmd
}

func printProject(w io.Writer, project *config.Project) error {
	for _, file := range project.Files {
		fmt.Fprintf(w, "%s (%s)\n", file.Path, cmp.Or(string(file.State), "unreadable"))
		if file.Problem != "" {
			fmt.Fprintf(w, "  problem: %s\n", file.Problem)
		}
		table := newTable(w)
		for _, s := range file.Servers {
			if s.Problem != "" {
				fmt.Fprintf(table, "  %s\t-\t%s\n", s.Name, s.Problem)
				continue
			}
			target := s.Target
			if s.EnvFile != "" {
				target += " (variables from " + s.EnvFile + ")"
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\n", s.Name, s.Transport, target)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}
