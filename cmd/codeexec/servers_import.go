package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"codeexec/bridge/config"
)

func newServersImportCommand(std streams, env environment) *cobra.Command {
	var (
		from          string
		dryRun, force bool
	)
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Copy the servers that other MCP clients have",
		Long: `Copy the servers that other MCP clients have into the state directory, as
imported-CLIENT.json; without --from, those of all clients. Run again, it copies
what has changed there since.

Entries are copied with references to variables, such as ${TOKEN}, as they are.
An entry that was edited or removed after it was copied stays so, unless --force
is given. Files of projects aren't copied: see "codeexec servers trust".

Clients: claude-desktop, claude-code, cursor, windsurf, vscode, gemini, codex,
opencode, zed.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			clients := config.Clients()
			if from != "" {
				client, err := config.ParseClient(from)
				if err != nil {
					return usagef(cmd, "--from: %w", err)
				}
				clients = []config.Source{client}
			}
			settings, warnings := env.read(slog.LevelWarn)
			newLogger(std.err, settings, warnings)
			opts := config.Options{StateDir: settings.stateDir, AllowSelf: settings.allowSelf}
			found := false
			for _, client := range clients {
				// One after the other: an entry that one has brought isn't copied again from the next.
				plan, err := config.PlanImport(cmd.Context(), opts, client, force)
				if err != nil {
					return err
				}
				if len(plan.From) == 0 && len(plan.Changes) == 0 && len(plan.Problems) == 0 {
					continue
				}
				found = true
				if err := printImport(std.out, plan); err != nil {
					return err
				}
				if dryRun {
					continue
				}
				if err := plan.Apply(); err != nil {
					return err
				}
			}
			switch {
			case !found:
				fmt.Fprintf(std.out, "No servers found of %s.\n", cmp.Or(from, "any client"))
			case dryRun:
				fmt.Fprintln(std.out, "\nNothing was written.")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the only `CLIENT` whose servers are copied")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be done, but don't do it")
	cmd.Flags().BoolVar(&force, "force", false, "replace what was edited, and bring back what was removed")
	return cmd
}

func printImport(w io.Writer, plan *config.Import) error {
	fmt.Fprintf(w, "%s → %s\n", plan.Client, shortPath(plan.File))
	for _, file := range plan.From {
		fmt.Fprintf(w, "  from %s\n", shortPath(file))
	}
	table := newTable(w)
	for _, c := range plan.Changes {
		about := c.Target
		if c.Note != "" {
			about = c.Note
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", c.Action, c.Name, about)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range plan.Problems {
		p.File = shortPath(p.File)
		fmt.Fprintf(w, "  problem: %s\n", p)
	}
	return nil
}
