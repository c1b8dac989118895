package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codeexec/testdata/npm"
)

// The script of the demonstration reads a folder through a real server and
// writes to it, once run by the command and once sent by a real client: the
// TypeScript SDK's.
func TestRealServerAndRealClient(t *testing.T) {
	bin := npm.Need(t, npm.Bin)
	self, err := exec.LookPath("codeexec")
	if err != nil {
		t.Fatal(err)
	}
	cache := freshCache(t)
	script, err := filepath.Abs("../../testdata/demo/notes.py")
	if err != nil {
		t.Fatal(err)
	}
	const printed = "3 notes, 3 open points, written to summary.md\n"
	const summary = "## home.txt\n- water the plants.\n## travel.txt\n- book the train to Vienna.\n- ask Ana about the hotel.\n"

	// arguments are those of codeexec, for a new folder of notes.
	arguments := func(t *testing.T, command ...string) (notes string, args []string) {
		t.Setenv("CODEEXEC_STATE_DIR", t.TempDir())
		t.Setenv("CODEEXEC_CACHE_DIR", cache)
		notes = t.TempDir()
		for name, text := range map[string]string{
			"shopping.txt": "Buy milk and bread.\n",
			"travel.txt":   "TODO: book the train to Vienna.\nTODO: ask Ana about the hotel.\n",
			"home.txt":     "Nothing to do here.\nTODO: water the plants.\n",
		} {
			if err := os.WriteFile(filepath.Join(notes, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return notes, append(command, "--server", "files="+filepath.Join(bin, "mcp-server-filesystem")+" "+notes)
	}
	check := func(t *testing.T, notes, stdout string) {
		if !strings.HasSuffix(stdout, printed) {
			t.Errorf("printed %q, want it to end with %q", stdout, printed)
		}
		if got, err := os.ReadFile(filepath.Join(notes, "summary.md")); err != nil || string(got) != summary {
			t.Errorf("summary.md: %q, %v; want %q", got, err, summary)
		}
	}

	t.Run("exec", func(t *testing.T) {
		notes, args := arguments(t, "exec", script)
		var stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, &stderr)
		}
		check(t, notes, string(out))
	})
	t.Run("serve", func(t *testing.T) {
		notes, args := arguments(t, "serve")
		// An import is looked up beside the file that has it.
		client := filepath.Join(filepath.Dir(filepath.Dir(bin)), "client.mjs")
		if err := copyFile(client, "../../testdata/npm/client.mjs"); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "node", append([]string{client, script, self}, args...)...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, &stderr)
		}
		var answer struct {
			Tools  []string
			Result struct {
				IsError           bool
				StructuredContent struct {
					Status, Stdout string
				}
			}
		}
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !slices.Equal(answer.Tools, []string{"run_python"}) {
			t.Errorf("tools %q, want run_python alone", answer.Tools)
		}
		if r := answer.Result; r.IsError || r.StructuredContent.Status != "success" {
			t.Errorf("result %s", out)
		}
		check(t, notes, answer.Result.StructuredContent.Stdout)
	})
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}
