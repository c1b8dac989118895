package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newSavedCommand(std streams, env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "saved",
		Short: "Show and delete the functions that scripts have saved",
		Long: `Show and delete the functions that scripts have saved by save_tool, and those
written by hand into the same file, user_tools/user_tools.py of the state directory.
Every new session finds them defined.`,
		Args: noSubcommand,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSavedListCommand(std, env), newSavedShowCommand(std, env), newSavedDeleteCommand(std, env))
	return cmd
}

func newSavedListCommand(std streams, env environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the saved functions with their signatures",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			var flags serverFlags
			var out bytes.Buffer
			if err := flags.ask(cmd, std, env, "import json\nprint(json.dumps(list_saved_tools()))", []string{}, &out); err != nil {
				return err
			}
			if asJSON {
				_, err := out.WriteTo(std.out)
				return err
			}
			var tools []struct{ Name, Signature, Description, Error string }
			if err := json.Unmarshal(out.Bytes(), &tools); err != nil {
				return fmt.Errorf("reading the list: %w", err)
			}
			if len(tools) == 0 {
				_, err := fmt.Fprintln(std.out, "No functions are saved.")
				return err
			}
			table := newTable(std.out)
			fmt.Fprintln(table, "NAME\tSIGNATURE\tDESCRIPTION")
			for _, tool := range tools {
				first, _, _ := strings.Cut(tool.Description, "\n")
				if tool.Error != "" {
					tool.Signature, first = "-", "broken: "+tool.Error
				}
				fmt.Fprintf(table, "%s\t%s\t%s\n", tool.Name, oneLine(tool.Signature, 80), oneLine(cmp.Or(first, "-"), 80))
			}
			return table.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newSavedShowCommand(std streams, env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print the source of a saved function, with what it needs",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef(cmd, "name a function")
			case len(args) > 1:
				return usagef(cmd, "one function at a time: %q is too much", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var flags serverFlags
			return flags.ask(cmd, std, env, "from mcp import _saved\nprint(_saved.source(arguments[0]))", args, std.out)
		},
	}
}

func newSavedDeleteCommand(std streams, env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME...",
		Short: "Delete saved functions",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef(cmd, "name a function")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			const code = `missing = [name for name in arguments if delete_saved_tool(name).endswith("not found.")]
if missing:
    raise LookupError("there is no saved tool " + ", ".join(map(repr, missing)))`
			var flags serverFlags
			return flags.ask(cmd, std, env, code, args, std.out)
		},
	}
}
