package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codeexec/testdata/oauthstub"
)

// What a user sees of a server that wants a login, from the first script to the logout.
func TestServersLogin(t *testing.T) {
	s := oauthstub.New(t)
	state := t.TempDir()
	t.Setenv("CODEEXEC_STATE_DIR", state)
	t.Setenv("CODEEXEC_CACHE_DIR", freshCache(t))
	t.Setenv("CODEEXEC_SOURCES", "state")
	entry := `{"mcpServers": {"cloud": {"url": "` + s.URL + `"}, "mute": {"url": "` + s.URL + `", "oauth": false}}}`
	if err := os.WriteFile(filepath.Join(state, "servers.json"), []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	var everything strings.Builder
	run := func(want int, args ...string) string {
		t.Helper()
		out, err := exec.Command("codeexec", args...).CombinedOutput()
		everything.Write(out)
		code := 0
		if exit, ok := err.(*exec.ExitError); ok {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != want {
			t.Errorf("codeexec %q: exit code %d, want %d\n%s", args, code, want, out)
		}
		return string(out)
	}
	contains := func(out string, patterns ...string) {
		t.Helper()
		for _, p := range patterns {
			if !regexp.MustCompile(p).MatchString(out) {
				t.Errorf("no %q in\n%s", p, out)
			}
		}
	}

	script := "try:\n  print(await mcp_cloud.echo())\nexcept ServerUnavailable as e:\n  print('unavailable:', e)"
	contains(run(0, "exec", "-c", "from mcp.runtime import ServerUnavailable\n"+script),
		`(?m)^unavailable: .*it wants its user to log in; run: codeexec servers login cloud$`)
	contains(run(0, "servers"), `(?m)^cloud .* http +needs login +-$`, `(?m)^To log in:\n  codeexec servers login cloud$`)
	contains(run(0, "servers", "--json"), `"name":"cloud",.*"status":"needs login"`)
	contains(run(1, "servers", "test", "cloud", "mute"), `login cloud`, `"mute" is not available: it answered with HTTP status 401`)
	contains(run(1, "servers", "login", "mute"), `there is nothing to log in for`)
	if n := s.Count("register") + s.Count("authorize"); n != 0 {
		t.Errorf("%d requests for a login that nobody wanted", n)
	}

	contains(run(0, "servers", "login", "--browser", "suitebrowser", "cloud"),
		`(?m)^Log in at cloud:\n\n  http://127.0.0.1:\d+/authorize\?.*\n\nLogged in at cloud: it has 1 tool\.$`)
	contains(run(0, "exec", "-c", "from mcp.runtime import ServerUnavailable\n"+script), "heard")
	contains(run(0, "servers"), `(?m)^cloud .* http +idle +1$`)
	t.Setenv("BROWSER", "suitebrowser %s")
	contains(run(0, "servers", "login", "cloud"), `^Logged in at cloud already: it has 1 tool\. .* logout cloud\n$`)

	// More rights are asked for when they are needed.
	s.Need("tools/call", "base write")
	contains(run(1, "call", "cloud", "echo"), `it wants more rights than its user has given \(base write\); run: codeexec servers login cloud`)
	contains(run(0, "servers", "login", "cloud"), `scope=base\+write`, `Logged in at cloud`)
	contains(run(0, "call", "cloud", "echo"), `heard`)

	contains(run(0, "servers", "logout", "cloud"), `^The login at cloud is forgotten\.\n$`)
	contains(run(1, "servers", "logout", "cloud"), `^codeexec: there is no login at "cloud"\n$`)
	contains(run(1, "call", "cloud", "echo"), `run: codeexec servers login cloud`)

	// The browser may be on another machine.
	login := exec.Command("codeexec", "servers", "login", "--no-browser", "cloud")
	in, err := login.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := login.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := login.Start(); err != nil {
		t.Fatal(err)
	}
	rest := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		rest += lines.Text() + "\n"
		address := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(address, s.Origin) {
			continue
		}
		resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Get(address)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if _, err := io.WriteString(in, "\n"+resp.Header.Get("Location")+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := login.Wait(); err != nil {
		t.Errorf("login without a browser: %v", err)
	}
	everything.WriteString(rest)
	contains(rest, `Paste the address of that page here`, `(?m)^Logged in at cloud: it has 1 tool\.$`)

	for _, secret := range s.Secrets() {
		if strings.Contains(everything.String(), secret) {
			t.Errorf("a token was shown")
		}
	}
}
