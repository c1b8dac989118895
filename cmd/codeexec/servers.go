package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"codeexec/bridge/config"
	"codeexec/bridge/upstream"
)

func newServersCommand(std streams, env environment) *cobra.Command {
	var flags serverFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "List the MCP servers that scripts may call",
		Long: `List the MCP servers that scripts may call, and what is wrong with their
configuration. No server is started: the number of tools is what a server had
when it last ran.

Servers are defined, and the first definition of a name wins, by

  --server and --config    of this command line
  state                    the files *.json of the state directory, ~/MCPs
  project                  .mcp.json and mcp-servers/*.json of the working
                           directory, once "servers trust" has been told so
  user                     ~/.config/mcp/servers/*.json
  claude-desktop, claude-code, cursor, windsurf, vscode, gemini, codex,
  opencode, zed            the files of these clients

Without --sources or CODEEXEC_SOURCES only state and project count. What other
clients have can also be copied once, by "servers import".`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, warnings := env.read(slog.LevelWarn)
			logger := newLogger(std.err, settings, warnings)
			opts, err := flags.options(cmd, settings)
			if err != nil {
				return err
			}
			set, err := config.Load(cmd.Context(), opts)
			if err != nil {
				return err
			}
			manager := openManager(settings, set, logger)
			infos := manager.Servers()
			if err := closeManager(cmd.Context(), manager); err != nil {
				return err
			}
			if asJSON {
				return printServersJSON(std.out, set, infos)
			}
			return printServers(std.out, set, infos)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(newServersTestCommand(std, env), newServersImportCommand(std, env), newServersTrustCommand(std, env))
	return cmd
}

// printServers prints a table, and the problems below. infos and set.Servers are of the same order.
func printServers(w io.Writer, set config.Set, infos []upstream.Info) error {
	if len(infos) == 0 {
		fmt.Fprintln(w, `No servers. Define some in the state directory, or see "codeexec servers import --help".`)
	} else {
		table := newTable(w)
		fmt.Fprintln(table, "NAME\tSOURCE\tTRANSPORT\tSTATUS\tTOOLS")
		for i, info := range infos {
			tools := "-"
			if info.Tools >= 0 {
				tools = strconv.Itoa(info.Tools)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", info.Name, shortPath(set.Servers[i].Source), info.Transport, info.Status, tools)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	printProblems(w, set.Problems)
	return nil
}

// printProblems lists mistakes first, and then what is only good to know.
func printProblems(w io.Writer, problems []config.Problem) {
	for _, hints := range []bool{false, true} {
		title := map[bool]string{false: "Problems:", true: "Notes:"}[hints]
		for _, p := range problems {
			if p.Hint != hints {
				continue
			}
			if title != "" {
				fmt.Fprintf(w, "\n%s\n", title)
				title = ""
			}
			p.File = shortPath(p.File)
			fmt.Fprintf(w, "  %s\n", p)
		}
	}
}

func printServersJSON(w io.Writer, set config.Set, infos []upstream.Info) error {
	type server struct {
		Name        string `json:"name"`
		Alias       string `json:"alias"`
		Source      string `json:"source"`
		Transport   string `json:"transport"`
		Status      string `json:"status"`
		Tools       *int   `json:"tools,omitempty"`
		Description string `json:"description,omitempty"`
	}
	type problem struct {
		File    string `json:"file"`
		Entry   string `json:"entry,omitempty"`
		Message string `json:"message"`
		Hint    bool   `json:"hint,omitempty"`
	}
	all := struct {
		Servers  []server  `json:"servers"`
		Problems []problem `json:"problems"`
	}{[]server{}, []problem{}}
	for i, info := range infos {
		s := server{info.Name, info.Alias, set.Servers[i].Source, info.Transport, info.Status, nil, info.Description}
		if info.Tools >= 0 {
			s.Tools = &info.Tools
		}
		all.Servers = append(all.Servers, s)
	}
	for _, p := range set.Problems {
		all.Problems = append(all.Problems, problem(p))
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(all)
}

func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// shortPath shows a path with ~ for the home directory.
func shortPath(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, strings.TrimRight(home, string(filepath.Separator))+string(filepath.Separator)); ok {
		return "~" + string(filepath.Separator) + rest
	}
	return path
}
