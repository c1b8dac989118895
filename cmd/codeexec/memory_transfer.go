package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"codeexec/memory"
)

// A memoryLine is a record as export writes it, and import reads it: the fields of a record's file.
type memoryLine struct {
	Key      string          `json:"key"`
	Value    json.RawMessage `json:"value"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Created  float64         `json:"created_at,omitempty"` // seconds since 1970
	Updated  float64         `json:"updated_at,omitempty"`
}

// epoch returns a time in seconds since 1970.
func epoch(t time.Time) float64 { return float64(t.Unix()) + float64(t.Nanosecond())/1e9 }

// fromEpoch returns the time of a number of seconds since 1970, the zero time for 0.
func fromEpoch(seconds float64) time.Time {
	if seconds <= 0 || seconds > math.MaxInt32<<8 {
		return time.Time{}
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(math.Round(fraction*1e9)))
}

func newMemoryExportCommand(std streams, env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write all records as JSON, one a line",
		Long: `Write all records to a file, or to standard output, as JSON, one a line. A damaged
record is left out, and named on standard error; the exit code is then 1.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef(cmd, "one file at a time: %q is too much", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			store, err := openMemory(std, env)
			if err != nil {
				return err
			}
			out := std.out
			if len(args) == 1 && args[0] != "-" {
				file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, file.Close()) }()
				out = file
			}
			return exportMemory(cmd.Context(), store, out)
		},
	}
}

func exportMemory(ctx context.Context, store memory.Store, out io.Writer) error {
	infos, err := store.List(ctx, "")
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	var damaged []error
	for _, info := range infos {
		rec, err := store.Get(ctx, info.Key)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, memory.ErrNotFound) && info.Err == nil:
			continue // deleted meanwhile
		case info.Err != nil || err != nil:
			damaged = append(damaged, cmp.Or(info.Err, err))
			continue
		}
		if err := printJSON(buffered, memoryLine{rec.Key, rec.Value, rec.Metadata, epoch(rec.Created), epoch(rec.Updated)}); err != nil {
			return err
		}
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return errors.Join(damaged...)
}

func newMemoryImportCommand(std streams, env environment) *cobra.Command {
	var replace, skip bool
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Save the records that export has written",
		Long: `Save the records in a file, or on standard input: JSON objects with a key and a
value, and perhaps metadata and times, one a line or in one array. If any of them
can't be saved, none is. That is also so where a key is in use already, unless
--replace or --skip says what is to be done.`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef(cmd, "name a file, or - for standard input")
			case len(args) > 1:
				return usagef(cmd, "one file at a time: %q is too much", args[1])
			case replace && skip:
				return usagef(cmd, "either --replace or --skip, not both")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := openMemory(std, env)
			if err != nil {
				return err
			}
			in := std.in
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer file.Close()
				in = file
			}
			records, err := readRecords(in)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			saved, skipped, err := importMemory(cmd.Context(), store, records, replace, skip)
			if err != nil {
				return err
			}
			fmt.Fprintf(std.out, "%d saved, %d skipped.\n", saved, skipped)
			return nil
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "replace what is saved under the same keys")
	cmd.Flags().BoolVar(&skip, "skip", false, "leave what is saved under the same keys")
	return cmd
}

// readRecords reads records, one after another or in an array, and checks them.
func readRecords(in io.Reader) ([]memory.Record, error) {
	buffered := bufio.NewReader(in)
	decoder := json.NewDecoder(buffered)
	start, _ := buffered.Peek(512)
	array := bytes.HasPrefix(bytes.TrimLeft(start, " \t\r\n"), []byte("["))
	if array {
		if _, err := decoder.Token(); err != nil {
			return nil, err
		}
	}
	var records []memory.Record
	seen := map[string]bool{}
	for decoder.More() {
		var line memoryLine
		err := decoder.Decode(&line)
		if err == nil && seen[line.Key] {
			err = fmt.Errorf("the key %q is there twice", line.Key)
		}
		if err == nil && line.Value == nil {
			err = fmt.Errorf("the key %q has no value", line.Key)
		}
		seen[line.Key] = true
		rec := memory.Record{Key: line.Key, Value: line.Value, Metadata: line.Metadata, Created: fromEpoch(line.Created), Updated: fromEpoch(line.Updated)}
		if err == nil {
			rec, err = memory.Limits{}.Check(rec)
		}
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", len(records)+1, err)
		}
		records = append(records, rec)
	}
	if array {
		if _, err := decoder.Token(); err != nil {
			return nil, fmt.Errorf("after record %d: the array has no end: %w", len(records), err)
		}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("after record %d: there is more than records", len(records))
	}
	return records, nil
}

func importMemory(ctx context.Context, store memory.Store, records []memory.Record, replace, skip bool) (saved, skipped int, err error) {
	used := map[string]bool{}
	var names []string
	for _, rec := range records {
		if _, err := store.Get(ctx, rec.Key); errors.Is(err, memory.ErrNotFound) {
			continue
		} else if ctx.Err() != nil {
			return 0, 0, context.Cause(ctx)
		}
		used[rec.Key] = true
		if names = append(names, fmt.Sprintf("%q", rec.Key)); len(names) > 5 {
			names[5] = "…"
		}
	}
	if len(used) > 0 && !replace && !skip {
		return 0, 0, fmt.Errorf("nothing is saved: %d of the keys are in use (%s); --replace or --skip says what to do", len(used), strings.Join(names[:min(len(names), 6)], ", "))
	}
	for _, rec := range records {
		if used[rec.Key] && skip {
			skipped++
			continue
		}
		if err := put(ctx, store, rec); err != nil {
			return saved, skipped, fmt.Errorf("%w (%d of %d records are saved)", err, saved, len(records))
		}
		saved++
	}
	return saved, skipped, nil
}

// put saves a record with its times, whatever is saved under its key.
func put(ctx context.Context, store memory.Store, rec memory.Record) error {
	for {
		old, err := store.Get(ctx, rec.Key)
		rec.Revision = old.Revision
		if damaged, ok := errors.AsType[*memory.DamagedError](err); ok {
			rec.Revision = damaged.Revision
		} else if err != nil && !errors.Is(err, memory.ErrNotFound) {
			return err
		}
		if _, err := store.CompareAndSet(ctx, rec); !errors.Is(err, memory.ErrConflict) {
			return err
		}
	}
}
