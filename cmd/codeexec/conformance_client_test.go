package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/txtar"

	"codeexec/testdata/npm"
)

// The official conformance suite of MCP plays the servers that scripts call: every scenario for clients, in
// every version of the protocol that it is for. What can't pass is in testdata/conformance/client.yml with the
// reason; it must fail, so that the list only gets shorter.
//
// The suite is given the program suiteclient, see suiteClient. In scenarios with a login, that types the commands
// of a user whose browser, suitebrowser, agrees to everything.
func TestConformanceClient(t *testing.T) {
	bin, err := npm.Conformance(t.Context())
	if errors.Is(err, npm.ErrNoNode) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	expected, err := readBaseline("../../testdata/conformance/client.yml")
	if err != nil {
		t.Fatal(err)
	}
	suite := newClientSuite(t, bin)
	scenarios := suite.scenarios(t)
	for name := range expected {
		if _, ok := scenarios[name]; !ok {
			t.Errorf("client.yml: the suite has no scenario %q", name)
		}
	}

	// One start of the suite for each version, since its start takes a second of a processor.
	var sets [][]string
	versions := make(map[string]bool)
	for _, list := range scenarios {
		for _, version := range list {
			versions[version] = true
		}
	}
	delete(versions, "extension") // those are a suite of their own
	sets = append(sets, []string{"--suite", "extensions"})
	for version := range versions {
		sets = append(sets, []string{"--suite", "all", "--spec-version", version})
	}
	// Some are in none of its suites.
	for name, list := range scenarios {
		if list[0] == "extension" && !strings.HasPrefix(name, "auth/") {
			sets = append(sets, []string{"--scenario", name})
		}
	}
	outcomes := make([]map[string]outcome, len(sets))
	var running sync.WaitGroup
	starts := make(chan struct{}, 2)
	for i, args := range sets {
		running.Go(func() {
			starts <- struct{}{}
			defer func() { <-starts }()
			outcomes[i] = suite.run(t, args)
		})
	}
	running.Wait()

	ran := make(map[string]int)
	for i, set := range outcomes {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			ran[name]++
			reason, listed := expected[name]
			t.Run(name+strings.TrimPrefix(strings.Join(sets[i][2:], "@"), "--spec-version"), func(t *testing.T) {
				switch got := set[name]; {
				case listed && len(got.failures) == 0:
					t.Errorf("it passes: take it out of client.yml")
				case listed:
					t.Logf("fails as expected: %s", reason)
				case len(got.failures) > 0:
					t.Errorf("%s\n%s", strings.Join(got.failures, "\n"), got.output)
				}
			})
		}
	}
	for name, list := range scenarios {
		if ran[name] != len(list) {
			t.Errorf("scenario %s has run %d times, want once for each of %q", name, ran[name], list)
		}
	}
}

// A clientSuite is the installed suite, and what its client needs.
type clientSuite struct {
	bin string   // directory of its programs
	env []string // of suiteclient
}

func newClientSuite(t *testing.T, bin string) clientSuite {
	t.Helper()
	scripts, err := filepath.Abs("../../testdata/conformance/client.txtar")
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return clientSuite{bin, []string{
		suiteScripts + "=" + scripts,
		suiteCompiled + "=" + compiled,
		suiteDir + "=" + t.TempDir(),
	}}
}

func (s clientSuite) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "conformance"), args...)
	cmd.Env = append(os.Environ(), "PATH="+s.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, s.env...)
	return cmd
}

// scenarios asks the suite for its scenarios for clients, each with the versions of the protocol that it is for,
// or with "extension".
func (s clientSuite) scenarios(t *testing.T) map[string][]string {
	t.Helper()
	out, err := s.command(t.Context(), "list").Output()
	if err != nil {
		t.Fatalf("conformance list: %v", err)
	}
	found := make(map[string][]string)
	inside := false
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "- "); !ok {
			inside = strings.HasPrefix(line, "Client scenarios")
		} else if name, versions, ok := strings.Cut(rest, " "); inside && ok {
			found[name] = strings.Split(strings.Trim(versions, "[]"), ",")
		}
	}
	if len(found) < 20 {
		t.Fatalf("conformance list has %d scenarios for clients:\n%s", len(found), out)
	}
	return found
}

// An outcome is what became of a scenario.
type outcome struct {
	failures []string
	output   string // of suiteclient
}

// run runs some of the scenarios, and returns what became of each.
func (s clientSuite) run(t *testing.T, args []string) map[string]outcome {
	program, err := exec.LookPath("suiteclient")
	if err != nil {
		t.Error(err)
		return nil
	}
	// The clients wait for one another.
	const timeout = 4 * patience
	results := t.TempDir()
	cmd := s.command(t.Context(), append([]string{"client", "--command", program, "--output-dir", results,
		"--timeout", strconv.FormatInt(timeout.Milliseconds(), 10)}, args...)...)
	out, _ := cmd.CombinedOutput() // how it exited is known better from its results
	outcomes := make(map[string]outcome)
	err = filepath.WalkDir(results, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != "checks.json" {
			return err
		}
		dir := filepath.Dir(path)
		name, err := filepath.Rel(results, dir)
		if err != nil {
			return err
		}
		name = runTime.ReplaceAllString(filepath.ToSlash(name), "")
		outcomes[name], err = readOutcome(dir)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if len(outcomes) == 0 {
		t.Errorf("conformance %q left no results:\n%s", args, out)
	}
	return outcomes
}

// runTime is what the suite puts after the name of a scenario.
var runTime = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[0-9-]+Z$`)

// readOutcome reads what the suite has left of a scenario in a directory.
func readOutcome(dir string) (outcome, error) {
	var got outcome
	data, err := os.ReadFile(filepath.Join(dir, "checks.json"))
	if err != nil {
		return got, err
	}
	var checks []struct{ ID, Name, Status, ErrorMessage string }
	if err := json.Unmarshal(data, &checks); err != nil {
		return got, err
	}
	passed := 0
	for _, check := range checks {
		switch check.Status {
		case "SUCCESS":
			passed++
		case "FAILURE", "WARNING":
			got.failures = append(got.failures, fmt.Sprintf("%s (%s): %s", check.ID, check.Name, check.ErrorMessage))
		}
	}
	if len(got.failures) == 0 && passed == 0 {
		got.failures = append(got.failures, "nothing was checked")
	}
	for _, file := range []string{"stdout.txt", "stderr.txt"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return got, err
		}
		got.output += string(text)
	}
	return got, nil
}

// readBaseline reads a file of the suite's format for expected failures, whose entries each end in a comment
// with the reason.
func readBaseline(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	entries := make(map[string]string)
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "- ")
		if !ok {
			continue
		}
		name, reason, ok := strings.Cut(line, " # ")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s: %q has no reason", file, line)
		}
		entries[strings.TrimSpace(name)] = strings.TrimSpace(reason)
	}
	return entries, lines.Err()
}

// What suiteClient is told by the environment.
const (
	suiteScripts  = "CODEEXEC_TEST_SCRIPTS"  // file with what scripts do
	suiteCompiled = "CODEEXEC_TEST_COMPILED" // cache directory with Python's compiled code
	suiteDir      = "CODEEXEC_TEST_DIR"      // directory for everything else
)

// suiteClient is the program that the suite runs, with the URL of its server as argument: an MCP client that
// has codeexec serve run the scenario's script. The client accepts what it is asked, with the defaults.
func suiteClient() {
	if err := runSuiteClient(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runSuiteClient(url string) (err error) {
	scripts, err := txtar.ParseFile(os.Getenv(suiteScripts))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(os.Getenv(suiteDir), "client-")
	if err != nil {
		return err
	}
	cache := filepath.Join(dir, "cache")
	if err := linkCache(cache, os.Getenv(suiteCompiled)); err != nil {
		return err
	}
	os.Setenv("CODEEXEC_STATE_DIR", filepath.Join(dir, "state"))
	os.Setenv("CODEEXEC_CACHE_DIR", cache)
	// The suite starts all clients at once. Two at a time get done sooner, and none runs into a limit.
	turn := flock.New(filepath.Join(os.Getenv(suiteDir), fmt.Sprint("turn", os.Getpid()%2)))
	if err := turn.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.Unlock()) }()

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	self, err := exec.LookPath("codeexec")
	if err != nil {
		return err
	}
	if strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/") {
		return runSuiteLogin(ctx, self, dir, url)
	}
	at := slices.IndexFunc(scripts.Files, func(f txtar.File) bool { return f.Name == os.Getenv("MCP_CONFORMANCE_SCENARIO") })
	if at < 0 {
		cmd := exec.CommandContext(ctx, self, "servers", "test", "--server", "suite="+url, "suite")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	}
	about := os.Getenv("MCP_CONFORMANCE_CONTEXT")
	if about == "" {
		about = "{}"
	}
	literal, err := json.Marshal(about) // is one of Python too
	if err != nil {
		return err
	}
	code := fmt.Sprintf("import asyncio, json\ncontext = json.loads(%s)\n%s", literal, scripts.Files[at].Data)

	cmd := exec.CommandContext(ctx, self, "serve", "--server", "suite="+url)
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "suiteclient", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
	})
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return fmt.Errorf("starting codeexec serve: %w", err)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": code, "timeout": 25}})
	err = errors.Join(err, session.Close())
	if err != nil {
		return err
	}
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			fmt.Println(text.Text)
		}
	}
	if result.IsError {
		return errors.New("the script failed")
	}
	return nil
}

// metadataDocument is the address of the client ID metadata document that the suite expects.
const metadataDocument = "https://conformance-test.local/client-metadata.json"

// runSuiteLogin logs in at the suite's server and calls its tool, as a user would: what a call says that it
// needs is typed, once.
func runSuiteLogin(ctx context.Context, self, dir, url string) error {
	var about struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Issuer       string `json:"issuer"`
		PrivateKey   string `json:"private_key_pem"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &about); err != nil {
			return err
		}
	}
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	client := map[string]any{"clientId": about.ClientID, "clientSecret": about.ClientSecret, "issuer": about.Issuer, "privateKey": about.PrivateKey}
	if scenario == "auth/basic-cimd" {
		client["clientId"] = metadataDocument
	}
	if strings.HasPrefix(scenario, "auth/client-credentials-") {
		client["grantType"] = "client_credentials"
	}
	file := filepath.Join(dir, "servers.json")
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"suite": map[string]any{"url": url, "oauth": client}}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	browser, err := exec.LookPath("suitebrowser")
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		call := exec.CommandContext(ctx, self, "call", "--config", file, "suite", "test-tool")
		said, err := call.CombinedOutput()
		os.Stdout.Write(said)
		if err == nil || attempt == 2 || !bytes.Contains(said, []byte("run: codeexec servers login suite")) {
			return err
		}
		login := exec.CommandContext(ctx, self, "servers", "login", "--config", file, "--browser", browser, "suite")
		login.Stdout, login.Stderr = os.Stdout, os.Stderr
		if err := login.Run(); err != nil {
			return err
		}
	}
}

// suiteBrowser is the browser of a user who agrees to everything: it goes where it is sent.
func suiteBrowser() {
	resp, err := http.Get(os.Args[len(os.Args)-1])
	if err != nil {
		os.Exit(1)
	}
	resp.Body.Close()
}
