package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// mostHits is how many tools the runtime returns at most.
const mostHits = 50

func newSearchCommand(std streams, env environment) *cobra.Command {
	var flags serverFlags
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find tools by what they do",
		Long: `Find tools by what they do, best first, as scripts find them by
runtime.search_tool_docs. Servers that were never seen are started for it.`,
		Example: `  codeexec search calendar events`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case strings.TrimSpace(strings.Join(args, " ")) == "":
				return usagef(cmd, "say what to look for")
			case limit < 1 || limit > mostHits:
				return usagef(cmd, "--limit must be from 1 to %d", mostHits)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			const code = `import json
print(json.dumps(list(runtime.search_tool_docs(arguments[0], limit=int(arguments[1]), scope='all'))))`
			var out bytes.Buffer
			err := flags.ask(cmd, std, env, code, []string{strings.Join(args, " "), strconv.Itoa(limit)}, &out)
			if err != nil {
				return err
			}
			if asJSON {
				_, err := out.WriteTo(std.out)
				return err
			}
			return printHits(std.out, out.Bytes())
		},
	}
	flags.register(cmd)
	cmd.Flags().IntVar(&limit, "limit", 10, "how many tools at most")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printHits(w io.Writer, data []byte) error {
	var hits []struct {
		Server, Tool, Description string
		Score                     float64
	}
	if err := json.Unmarshal(data, &hits); err != nil {
		return fmt.Errorf("reading what was found: %w", err)
	}
	if len(hits) == 0 {
		fmt.Fprintln(w, "No tools found.")
		return nil
	}
	table := newTable(w)
	fmt.Fprintln(table, "SCORE\tSERVER\tTOOL\tDESCRIPTION")
	for _, h := range hits {
		fmt.Fprintf(table, "%.2f\t%s\t%s\t%s\n", h.Score, oneLine(h.Server, 40), oneLine(h.Tool, 60), oneLine(h.Description, 80))
	}
	return table.Flush()
}

// oneLine is the beginning of a server's text, fit for a line of a table: at most n characters, and none that
// moves the cursor.
func oneLine(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	text = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > n {
		text = string(runes[:n-1]) + "…"
	}
	return text
}
