package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"codeexec/bridge/config"
	"codeexec/bridge/oauth"
	"codeexec/bridge/suggest"
	"codeexec/bridge/upstream"
)

// loginTime is how long a user may take to log in.
const loginTime = 10 * time.Minute

func newServersLoginCommand(std streams, env environment) *cobra.Command {
	var (
		flags     serverFlags
		browser   string
		noBrowser bool
	)
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in at a remote server",
		Long: `Log in at a remote server that wants it (OAuth 2.1). The browser is opened at
the page where that is done, and its address printed; then the server's tools are
listed, to see that it works. If the server has asked for more rights since the
last login, they are asked for too.

What the login brings is kept in the state directory, in "logins", readable for
you alone. Scripts use and renew it, and never open a browser themselves: where
there is no login, a call fails with the command to type.

Most servers let codeexec register itself. For others, have a client registered,
with the redirect URI http://127.0.0.1:PORT/callback, and add to the server's
entry: "oauth": {"clientId": "…", "clientSecret": "…", "redirectUri": "…"}. With
"grantType": "client_credentials" a server needs no login.

The browser is $BROWSER, or what the system opens web pages with. With
--no-browser it may also be on another machine: the address at which it ends is
typed in then.`,
		Args: oneServer,
		RunE: func(cmd *cobra.Command, args []string) error {
			open := browserCommand(cmp.Or(browser, browserOf(env)))
			if noBrowser {
				open = nil
			}
			return login(cmd, std, env, &flags, args[0], open)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&browser, "browser", "", "`COMMAND` that opens a web page, whose address is its last argument")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "only print the address, and take the one at which the browser ends from standard input")
	return cmd
}

// readLines returns a channel that brings the lines of r that aren't empty, and is closed at its end. Whoever
// reads r doesn't stop before that.
func readLines(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(r); scanner.Scan(); {
			if line := strings.TrimSpace(scanner.Text()); line != "" {
				lines <- line
			}
		}
	}()
	return lines
}

// oneServer wants the name of a server.
func oneServer(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef(cmd, "want the name of one server, see codeexec servers")
	}
	return nil
}

func login(cmd *cobra.Command, std streams, env environment, flags *serverFlags, name string, open func(string) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), loginTime, fmt.Errorf("nobody logged in within %v", loginTime))
	defer cancel()
	settings, warnings := env.read(slog.LevelError) // a failure is shown anyway
	logger := newLogger(std.err, settings, warnings)
	server, err := flags.remote(cmd, settings, logger, name)
	if err != nil {
		return err
	}
	asked := false
	var lines <-chan string // what the user types
	ask := func(_ context.Context, address string) (<-chan string, error) {
		if err := checkAddress(address); err != nil {
			return nil, err
		}
		asked = true
		fmt.Fprintf(std.out, "Log in at %s:\n\n  %s\n\n", name, address)
		if open == nil {
			fmt.Fprint(std.out, "If the browser is on another machine, it ends at a page that can't be shown.\nPaste the address of that page here, and press Enter.\n\n")
			if lines == nil {
				lines = readLines(std.in)
			}
			return lines, nil
		}
		if err := open(address); err != nil {
			fmt.Fprintf(std.err, "codeexec: the browser can't be opened: %v; open the address yourself\n", err)
		}
		return nil, nil
	}
	opts := managerOptions(settings, logger)
	opts.OAuth = oauth.New(oauth.Options{Dir: loginsDir(settings), Logger: logger, Ask: ask})
	// The server is waited for as long as its user.
	opts.StartTimeout, opts.ProbeTimeout, opts.ListTimeout = loginTime, loginTime, loginTime
	access := opts.OAuth.Access(server)
	if access == nil {
		return fmt.Errorf(`server %q has its own "Authorization" header, or "oauth": false, in %s: there is nothing to log in for`, name, shortPath(server.Source))
	}
	if _, err := access.Login(ctx); err != nil {
		return fmt.Errorf("server %q: %w", name, err)
	}
	manager := upstream.NewManager([]config.Server{server}, opts)
	defer func() { err = errors.Join(err, closeManager(cmd.Context(), manager)) }()
	tools, err := manager.Refresh(ctx, name)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case asked:
		fmt.Fprintf(std.out, "Logged in at %s: it has %s.\n", name, countOf(len(tools), "tool"))
	case server.OAuth.ClientCredentials:
		fmt.Fprintf(std.out, "%s needs no login: codeexec has its own secret for it. It has %s.\n", name, countOf(len(tools), "tool"))
	case access.Status() == oauth.StatusDone:
		fmt.Fprintf(std.out, "Logged in at %s already: it has %s. To be somebody else there: codeexec servers logout %s\n", name, countOf(len(tools), "tool"), config.ShellWord(name))
	default:
		fmt.Fprintf(std.out, "%s doesn't ask for a login. It has %s.\n", name, countOf(len(tools), "tool"))
	}
	return nil
}

func newServersLogoutCommand(std streams, env environment) *cobra.Command {
	var flags serverFlags
	cmd := &cobra.Command{
		Use:   "logout NAME",
		Short: "Forget the login at a remote server",
		Args:  oneServer,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			settings, warnings := env.read(slog.LevelError)
			logger := newLogger(std.err, settings, warnings)
			server, err := flags.remote(cmd, settings, logger, name)
			if err != nil {
				return err
			}
			// What was kept before the owner switched it off goes too.
			server.OAuth.Off, server.Headers = false, nil
			had, err := oauth.New(oauth.Options{Dir: loginsDir(settings), Logger: logger}).Access(server).Logout(cmd.Context())
			if err != nil {
				return fmt.Errorf("server %q: %w", name, err)
			}
			if !had {
				return fmt.Errorf("there is no login at %q", name)
			}
			fmt.Fprintf(std.out, "The login at %s is forgotten.\n", name)
			return nil
		},
	}
	flags.register(cmd)
	return cmd
}

// remote finds a server that is reached by HTTP.
func (f *serverFlags) remote(cmd *cobra.Command, s settings, logger *slog.Logger, name string) (config.Server, error) {
	f.only = name
	set, err := f.load(cmd, s, logger, true)
	if err != nil {
		return config.Server{}, err
	}
	var names []string
	for _, server := range set.Servers {
		names = append(names, server.Name)
		switch {
		case server.Name != name:
		case server.URL == "":
			return server, fmt.Errorf("server %q is a program on this machine: it takes no login", name)
		default:
			return server, nil
		}
	}
	return config.Server{}, &upstream.UnknownServerError{Server: name, Suggestions: suggest.Names(name, names)}
}

// checkAddress looks at an address that an authorization server has named before it gets to a shell, a browser or
// a terminal.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	odd := strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'`<>\\^{|}$;()*!", r) })
	if err != nil || odd || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("the authorization server's address has characters that aren't safe to open")
	}
	return nil
}

// browserOf returns the command that $BROWSER names: the first, if there are several.
func browserOf(env environment) string {
	value, _ := env("BROWSER")
	first, _, _ := strings.Cut(value, string(filepath.ListSeparator))
	return strings.TrimSpace(first)
}

// browserCommand returns a function that opens an address: with a command, whose last argument it is, or, if that
// is empty, with what the system has for it.
func browserCommand(command string) func(address string) error {
	words := strings.Fields(command)
	if len(words) == 0 {
		switch runtime.GOOS {
		case "windows":
			words = []string{"rundll32", "url.dll,FileProtocolHandler"}
		case "darwin":
			words = []string{"open"}
		default:
			words = []string{"xdg-open"}
		}
	}
	return func(address string) error {
		var args []string
		placed := false
		for _, word := range words[1:] {
			placed = placed || strings.Contains(word, "%s")
			args = append(args, strings.ReplaceAll(word, "%s", address))
		}
		if !placed {
			args = append(args, address)
		}
		program := exec.Command(words[0], args...)
		program.Stdout, program.Stderr = io.Discard, io.Discard
		if err := program.Start(); err != nil {
			return err
		}
		go program.Wait() // it may be the browser itself, which stays
		return nil
	}
}
