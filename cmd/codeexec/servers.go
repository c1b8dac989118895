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
	"time"

	"github.com/spf13/cobra"

	"codeexec/bridge/catalog"
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
when it last ran, and one that failed then is shown with the reason.

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
			var servers []listed
			for i, info := range manager.Servers() {
				s := listed{Info: info, source: set.Servers[i].Source}
				s.failure, s.failed = manager.Failure(info.Name)
				servers = append(servers, s)
			}
			if err := closeManager(cmd.Context(), manager); err != nil {
				return err
			}
			if asJSON {
				return printServersJSON(std.out, servers, set.Problems)
			}
			return printServers(std.out, servers, set.Problems)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(newServersTestCommand(std, env), newServersImportCommand(std, env), newServersTrustCommand(std, env),
		newServersLoginCommand(std, env), newServersLogoutCommand(std, env))
	return cmd
}

// listed is a server as it is shown.
type listed struct {
	upstream.Info
	source  string
	failure catalog.Failure // of any process
	failed  bool            // whether there is one
}

// status is what the table shows. A server that isn't running can still be known not to work.
func (s listed) status() string {
	switch {
	case s.Status == upstream.StatusDisabled:
	case s.NeedsLogin:
		return "needs login"
	case s.failed && s.Status == upstream.StatusIdle:
		return upstream.StatusFailed
	}
	return s.Status
}

// printServers prints a table, and what is wrong below.
func printServers(w io.Writer, servers []listed, problems []config.Problem) error {
	if len(servers) == 0 {
		fmt.Fprintln(w, `No servers. Define some in the state directory, or see "codeexec servers import --help".`)
	} else {
		table := newTable(w)
		fmt.Fprintln(table, "NAME\tSOURCE\tTRANSPORT\tSTATUS\tTOOLS")
		for _, s := range servers {
			tools := "-"
			if s.Tools >= 0 {
				tools = strconv.Itoa(s.Tools)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.Name, shortPath(s.source), s.Transport, s.status(), tools)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	title := "\nTo log in:\n"
	for _, s := range servers {
		if s.NeedsLogin && s.Status != upstream.StatusDisabled {
			fmt.Fprintf(w, "%s  codeexec servers login %s\n", title, config.ShellWord(s.Name))
			title = ""
		}
	}
	title = "\nFailed when they were last used:\n"
	for _, s := range servers {
		if s.failed && !s.NeedsLogin && s.Status != upstream.StatusDisabled {
			when := s.failure.At.Local().Format(time.DateTime)
			fmt.Fprintf(w, "%s  %s, %s: %s\n", title, s.Name, when, strings.ReplaceAll(s.failure.Reason, "\n", "\n    "))
			title = ""
		}
	}
	printProblems(w, problems)
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

func printServersJSON(w io.Writer, servers []listed, problems []config.Problem) error {
	type server struct {
		Name        string           `json:"name"`
		Alias       string           `json:"alias"`
		Source      string           `json:"source"`
		Transport   string           `json:"transport"`
		Status      string           `json:"status"`
		Tools       *int             `json:"tools,omitempty"`
		Description string           `json:"description,omitempty"`
		Failure     *catalog.Failure `json:"failure,omitempty"`
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
	for _, s := range servers {
		shown := server{s.Name, s.Alias, s.source, s.Transport, s.status(), nil, s.Description, nil}
		if s.Tools >= 0 {
			shown.Tools = &s.Tools
		}
		if s.failed {
			shown.Failure = &s.failure
		}
		all.Servers = append(all.Servers, shown)
	}
	for _, p := range problems {
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
