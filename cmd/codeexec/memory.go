package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"codeexec/memory"
)

func newMemoryCommand(std streams, env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Show and change what scripts have saved by key",
		Long: `Show and change what scripts have saved by save_memory and update_memory. Each
record is also a file in the folder user_tools/memory of the state directory.
Scripts may run meanwhile.`,
		Args: noSubcommand,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newMemoryListCommand(std, env), newMemoryGetCommand(std, env), newMemorySetCommand(std, env), newMemoryDeleteCommand(std, env),
		newMemoryExportCommand(std, env), newMemoryImportCommand(std, env),
	)
	return cmd
}

// noSubcommand refuses arguments of a command that only has subcommands.
func noSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(cmd, "unknown command %q", args[0])
	}
	return nil
}

// stateOf returns the settings of a command that is of no use without a state directory.
func (env environment) stateOf(std streams) (settings, error) {
	s, warnings := env.read(slog.LevelWarn)
	newLogger(std.err, s, warnings)
	if s.stateDir == "" {
		return s, errors.New("there is no state directory; set CODEEXEC_STATE_DIR")
	}
	return s, nil
}

// openMemory opens the store without making anything on the disk.
func openMemory(std streams, env environment) (*memory.Dir, error) {
	s, err := env.stateOf(std)
	if err != nil {
		return nil, err
	}
	return memory.OpenDir(filepath.Join(s.stateDir, "user_tools", "memory"), filepath.Join(s.stateDir, "memory.lock"), memory.Limits{})
}

// A memoryRow is a record without its value, as list prints it in JSON.
type memoryRow struct {
	Key      string          `json:"key"`
	Size     int             `json:"size"` // of the value, in bytes
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Created  float64         `json:"created_at,omitempty"` // seconds since 1970
	Updated  float64         `json:"updated_at,omitempty"`
	Error    string          `json:"error,omitempty"`
}

func newMemoryListCommand(std streams, env environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List the keys, or those that begin with a prefix",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef(cmd, "one prefix at a time: %q is too much", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := openMemory(std, env)
			if err != nil {
				return err
			}
			infos, err := store.List(cmd.Context(), strings.Join(args, ""))
			if err != nil {
				return err
			}
			if asJSON {
				return printMemoryJSON(std.out, infos)
			}
			if len(infos) == 0 && len(args) == 1 {
				_, err := fmt.Fprintf(std.out, "No key begins with %q.\n", args[0])
				return err
			}
			return printMemory(std.out, infos)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printMemoryJSON(w io.Writer, infos []memory.Info) error {
	rows := make([]memoryRow, 0, len(infos))
	for _, info := range infos {
		if info.Err != nil {
			rows = append(rows, memoryRow{Key: info.Key, Error: info.Err.Error()})
			continue
		}
		rows = append(rows, memoryRow{info.Key, info.Size, info.Metadata, epoch(info.Created), epoch(info.Updated), ""})
	}
	return printJSON(w, rows)
}

func printMemory(w io.Writer, infos []memory.Info) error {
	if len(infos) == 0 {
		_, err := fmt.Fprintln(w, "Nothing is saved.")
		return err
	}
	table := newTable(w)
	fmt.Fprintln(table, "KEY\tSIZE\tUPDATED\tMETADATA")
	for _, info := range infos {
		key := oneLine(info.Key, 60)
		if info.Err != nil {
			fmt.Fprintf(table, "%s\t-\t-\t%s\n", key, oneLine(info.Err.Error(), 100))
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", key, info.Size, info.Updated.Local().Format(time.DateTime), oneLine(string(info.Metadata), 60))
	}
	return table.Flush()
}

// printJSON writes a value as one line.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

func newMemoryGetCommand(std streams, env environment) *cobra.Command {
	var text bool
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Print a value as JSON",
		Args:  oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := openMemory(std, env)
			if err != nil {
				return err
			}
			rec, err := store.Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if text {
				var s string
				if err := json.Unmarshal(rec.Value, &s); err != nil || rec.Value[0] != '"' {
					return fmt.Errorf("the value of %q is no string", args[0])
				}
				_, err := fmt.Fprintln(std.out, s)
				return err
			}
			var b bytes.Buffer
			if json.Indent(&b, rec.Value, "", "  ") != nil {
				b.Write(rec.Value)
			}
			_, err = fmt.Fprintln(std.out, b.String())
			return err
		},
	}
	cmd.Flags().BoolVar(&text, "string", false, "print a string as it is, and not as JSON")
	return cmd
}

func oneKey(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usagef(cmd, "name a key")
	case len(args) > 1:
		return usagef(cmd, "one key at a time: %q is too much", args[1])
	}
	return nil
}

func newMemorySetCommand(std streams, env environment) *cobra.Command {
	var text bool
	var metadata string
	cmd := &cobra.Command{
		Use:   "set KEY VALUE|-",
		Short: "Save a value, which is JSON",
		Long: `Save a value, which is JSON, or with --string any text; - reads it from standard
input. What was saved under that key is replaced; its metadata stay unless others
are given.`,
		Example: `  codeexec memory set seen '{"ids": [1, 2]}'
  codeexec memory set --string greeting 'Good morning'`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) < 2:
				return usagef(cmd, "name a key and a value")
			case len(args) > 2:
				return usagef(cmd, "one value at a time: %q is too much; is there a quote missing?", args[2])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			value := []byte(args[1])
			if args[1] == "-" {
				var err error
				if value, err = io.ReadAll(io.LimitReader(std.in, 2*memory.DefaultValue)); err != nil {
					return fmt.Errorf("reading the value: %w", err)
				}
			}
			if text {
				value, _ = json.Marshal(string(value)) // a string
			} else if !json.Valid(value) {
				return usagef(cmd, "the value is not JSON; with --string it may be any text")
			}
			var about json.RawMessage
			if cmd.Flags().Changed("metadata") {
				var object map[string]json.RawMessage
				if json.Unmarshal([]byte(metadata), &object) != nil || object == nil {
					return usagef(cmd, "--metadata: it must be a JSON object")
				}
				about = json.RawMessage(metadata)
			}
			store, err := openMemory(std, env)
			if err != nil {
				return err
			}
			_, err = memory.Save(cmd.Context(), store, args[0], value, about)
			return err
		},
	}
	cmd.Flags().BoolVar(&text, "string", false, "the value is text, and saved as a string")
	cmd.Flags().StringVar(&metadata, "metadata", "", "a JSON `OBJECT` that list shows")
	return cmd
}

func newMemoryDeleteCommand(std streams, env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "delete KEY...",
		Short: "Delete records, also damaged ones",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef(cmd, "name a key")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := openMemory(std, env)
			if err != nil {
				return err
			}
			var errs []error
			for _, key := range args {
				errs = append(errs, store.Delete(cmd.Context(), key))
			}
			return errors.Join(errs...)
		},
	}
}
