package main

import (
	"github.com/spf13/cobra"

	"codeexec/bridge/install"
)

func newUninstallCommand(std streams, env environment) *cobra.Command {
	var printOnly, force bool
	cmd := &cobra.Command{
		Use:   "uninstall CLIENT",
		Short: "Take codeexec out of an MCP client",
		Long: `Undo what "codeexec install" has done to the configuration of an MCP client, or
remove the entry "codeexec" that is there otherwise, and show the change. What has
changed in the file since stays.

An entry that was there before "codeexec install" comes back; after that, a second
"codeexec uninstall" removes it.

Clients: claude-desktop, claude-code, cursor, windsurf, vscode, gemini, codex,
opencode, zed.`,
		Args: oneClient,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := installOptions(cmd, args[0], std, env)
			if err != nil {
				return err
			}
			opts.Force = force
			plan, err := install.PlanUninstall(opts)
			if err != nil {
				return err
			}
			return carryOut(std.out, plan, printOnly)
		},
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "only show what would change")
	cmd.Flags().BoolVar(&force, "force", false, `remove an entry "codeexec" that starts something else`)
	return cmd
}
