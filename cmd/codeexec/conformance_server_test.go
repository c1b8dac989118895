package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codeexec/testdata/npm"
)

// The official conformance suite of MCP plays a client: every scenario for servers, in every version of the
// protocol that it is for. What can't pass is in testdata/conformance/server.yml with the reason; it must fail,
// so that the list only gets shorter, and for no other reason than that it wants what only a reference server has.
func TestConformanceServer(t *testing.T) {
	bin := npm.Need(t, npm.Conformance)
	expected, err := readBaseline("../../testdata/conformance/server.yml")
	if err != nil {
		t.Fatal(err)
	}
	server := startHTTP(t)
	unused := make(map[string]bool)
	for name := range expected {
		unused[name] = true
	}
	for _, version := range suiteVersions(t, bin) {
		t.Run(version, func(t *testing.T) {
			outcomes := runServerScenarios(t, bin, server.url, version)
			for name, failures := range outcomes {
				reason, listed := expected[name]
				delete(unused, name)
				t.Run(name, func(t *testing.T) {
					others := slices.DeleteFunc(slices.Clone(failures), wantOfFixture.MatchString)
					switch {
					case listed && len(failures) == 0:
						t.Error("it passes: take it out of server.yml")
					case listed && len(others) == 0:
						t.Logf("fails as expected: %s", reason)
					case len(others) > 0 || len(failures) > 0:
						t.Error(strings.Join(failures, "\n"))
					}
				})
			}
		})
	}
	for name := range unused {
		t.Errorf("server.yml: the suite has no scenario %q", name)
	}
}

// wantOfFixture is what scenarios say that call what only a reference server has.
var wantOfFixture = regexp.MustCompile(`unknown (tool|prompt) "test_|Not testable|Resource not found|` +
	`Tool 'json_schema_2020_12_tool' not found|method not found: "resources/subscribe"|` +
	`could not get initial InputRequiredResult|Expected InputRequiredResult with inputRequests|` +
	`^server-sse-(retry-field|disconnect-resume) |^sep-2322-missing-response-rerequests `)

// suiteVersions are the versions of the protocol for which the suite has scenarios for servers. Extensions of the
// protocol, of which we have none, aren't among them.
func suiteVersions(t *testing.T, bin string) []string {
	t.Helper()
	out, err := suiteCommand(t, bin, "list", "--server").Output()
	if err != nil {
		t.Fatalf("conformance list: %v", err)
	}
	versions := regexp.MustCompile(`\d{4}-\d\d-\d\d`).FindAllString(string(out), -1)
	slices.Sort(versions)
	versions = slices.Compact(versions)
	if len(versions) < 4 {
		t.Fatalf("conformance list knows the versions %q:\n%s", versions, out)
	}
	return versions
}

func suiteCommand(t *testing.T, bin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "conformance"), args...)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// runServerScenarios runs all scenarios of a version of the protocol, and returns what failed in each.
func runServerScenarios(t *testing.T, bin, url, version string) map[string][]string {
	results := t.TempDir()
	cmd := suiteCommand(t, bin, "server", "--url", url, "--suite", "all", "--spec-version", version, "--output-dir", results)
	out, _ := cmd.CombinedOutput() // how it exited is known better from its results
	outcomes := make(map[string][]string)
	err := filepath.WalkDir(results, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "checks.json" {
			return err
		}
		name := runTime.ReplaceAllString(filepath.Base(filepath.Dir(path)), "")
		name = strings.TrimPrefix(name, "server-")
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(data, &checks); err != nil {
			return err
		}
		outcomes[name] = nil
		for _, check := range checks {
			if check.Status == "FAILURE" || check.Status == "WARNING" {
				outcomes[name] = append(outcomes[name], fmt.Sprintf("%s %s", check.ID, check.ErrorMessage))
			}
		}
		if len(checks) == 0 {
			outcomes[name] = []string{"nothing was checked"}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "=== SUMMARY ===") || len(outcomes) == 0 {
		t.Fatalf("conformance %s left no results:\n%s", version, out)
	}
	return outcomes
}
