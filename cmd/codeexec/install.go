package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"codeexec/bridge/config"
	"codeexec/bridge/install"
)

func newInstallCommand(std streams, env environment) *cobra.Command {
	var printOnly, force bool
	cmd := &cobra.Command{
		Use:   "install CLIENT",
		Short: "Add codeexec to an MCP client",
		Long: `Write an entry that starts "codeexec serve" into the user's configuration of an
MCP client, and show the change. Nothing else in the file changes: comments,
order and layout stay. What was in it before is kept beside it, with
".before-codeexec" at the end of its name.

Where codeexec is there already, only the path of the program is corrected.

Clients: claude-desktop, claude-code, cursor, windsurf, vscode, gemini, codex,
opencode, zed.`,
		Example: `  codeexec install claude-desktop
  codeexec install --print cursor`,
		Args: oneClient,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := installOptions(cmd, args[0], std, env)
			if err != nil {
				return err
			}
			opts.Force = force
			if opts.Command, err = ownCommand(); err != nil {
				return err
			}
			plan, err := install.PlanInstall(opts)
			if err != nil {
				return err
			}
			return carryOut(std.out, plan, printOnly)
		},
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "only show what would change")
	cmd.Flags().BoolVar(&force, "force", false, `replace an entry "codeexec" that starts something else`)
	return cmd
}

// oneClient wants the name of a client as the only argument.
func oneClient(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		_, err := config.ParseClient("")
		return usagef(cmd, "which client? %s", strings.TrimPrefix(err.Error(), `unknown client "": `))
	case 1:
		return nil
	}
	return usagef(cmd, "one client at a time: %q is too much", args[1])
}

func installOptions(cmd *cobra.Command, name string, std streams, env environment) (install.Options, error) {
	client, err := config.ParseClient(name)
	if err != nil {
		return install.Options{}, usagef(cmd, "%w", err)
	}
	settings, warnings := env.read(slog.LevelWarn)
	newLogger(std.err, settings, warnings)
	return install.Options{
		Client: client,
		Args:   []string{"serve"},
		Config: config.Options{StateDir: settings.stateDir},
	}, nil
}

// carryOut shows a plan, and applies it unless it is only to be shown.
func carryOut(w io.Writer, plan *install.Plan, printOnly bool) error {
	name := shortPath(plan.File)
	if !plan.Changed() {
		fmt.Fprintf(w, "%s: nothing to change: %s\n", name, plan.Note)
	} else {
		fmt.Fprint(w, plan.Diff(name))
	}
	if printOnly {
		fmt.Fprintln(w, "Nothing was written.")
		return nil
	}
	if err := plan.Apply(); err != nil {
		return err
	}
	if !plan.Changed() {
		return nil
	}
	backup := install.BackupPath(plan.File)
	if _, err := os.Stat(backup); err == nil {
		fmt.Fprintf(w, "What was there before is in %s.\n", shortPath(backup))
	}
	if plan.Note != "" {
		fmt.Fprintf(w, "Note: %s.\n", plan.Note)
	}
	fmt.Fprintf(w, "Restart %s if it is running.\n", plan.Client)
	return nil
}

// ownCommand is the absolute path by which others can start this program. It is the one that the user knows,
// where that leads here: a symbolic link outlives an update, and what it leads to may not.
func ownCommand() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the path of codeexec: %w", err)
	}
	if found, err := exec.LookPath(os.Args[0]); err == nil && sameFile(found, exe) {
		if abs, err := filepath.Abs(found); err == nil {
			exe = abs
		}
	}
	if strings.Contains(exe, string(filepath.Separator)+"go-build") {
		return "", errors.New(`"go run" removes the program when it ends; build codeexec, and run that`)
	}
	return exe, nil
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
