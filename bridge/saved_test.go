package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"codeexec/hostfuncs"
	"codeexec/wasmhost"
)

// savedRun calls fn in a run of a bridge with a new state directory, and returns the path of its saved tools.
func savedRun(t *testing.T, fn func(do func(op string, params any) (string, error), file string)) {
	t.Helper()
	state := t.TempDir()
	projects := filepath.Join(state, "user_tools")
	if err := os.Mkdir(projects, 0o700); err != nil {
		t.Fatal(err)
	}
	scripts := map[string]script{"code": func(ctx context.Context, sb *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		fn(func(op string, params any) (string, error) {
			raw, err := sb.call(ctx, op, params)
			return string(raw), err
		}, filepath.Join(projects, "user_tools.py"))
		return succeed(""), nil
	}}
	b, _ := newFakeBridge(t, Options{Projects: projects, ToolsLock: filepath.Join(state, "lock")}, scripts, nil)
	mustRun(t, b, RunRequest{Code: "code"})
}

func TestSavedToolsAreReplacedIfUnchanged(t *testing.T) {
	savedRun(t, func(do func(string, any) (string, error), file string) {
		revision := func() string {
			t.Helper()
			raw, err := do("saved.read", fields{})
			var read toolText
			if err != nil || json.Unmarshal([]byte(raw), &read) != nil {
				t.Fatalf("reading: %s, %v", raw, err)
			}
			if data, _ := os.ReadFile(file); read.Text != string(data) {
				t.Errorf("read %q, the file has %q", read.Text, data)
			}
			return read.Revision
		}
		write := func(revision, text, want string) {
			t.Helper()
			if got, err := do("saved.write", fields{"revision": revision, "text": text}); err != nil || got != want {
				t.Errorf("writing %q: %s, %v, want %s", text, got, err, want)
			}
		}
		if got := revision(); got != "" {
			t.Errorf("without a file the revision is %q", got)
		}
		write("other", "x = 0\n", "false")
		write("", "x = 'ü'\n", "true")
		write("", "x = 2\n", "false")
		first := revision()
		write(first, "x = 3\n", "true")
		write(first, "x = 4\n", "false")
		// What people write counts, too.
		if err := os.WriteFile(file, []byte("# by hand\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		write(first, "x = 5\n", "false")
		write(revision(), "x = 6\n", "true")
		if data, err := os.ReadFile(file); err != nil || string(data) != "x = 6\n" {
			t.Errorf("the file has %q, %v", data, err)
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

func TestWhatIsNoFileOfSavedTools(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, file string) error
		want string // of the error; "" if it is a file
	}{
		{"a directory", func(t *testing.T, file string) error { return os.Mkdir(file, 0o700) }, "is not a file"},
		{"not UTF-8", func(t *testing.T, file string) error { return os.WriteFile(file, []byte("\xff"), 0o600) }, "is not UTF-8"},
		{"too large", func(t *testing.T, file string) error { return os.WriteFile(file, make([]byte, maxToolFile+1), 0o600) }, "has more than 4194304 bytes"},
		{"a link that leads out", func(t *testing.T, file string) error {
			outside := filepath.Join(t.TempDir(), "secret.py")
			return errors.Join(os.WriteFile(outside, []byte("secret"), 0o600), os.Symlink(outside, file))
		}, "escapes"},
		{"a link to nothing", func(t *testing.T, file string) error { return os.Symlink("nothing", file) }, "is a link to nothing"},
		{"a link inside", func(t *testing.T, file string) error {
			return errors.Join(os.WriteFile(filepath.Join(filepath.Dir(file), "real.py"), []byte("x = 1\n"), 0o600), os.Symlink("real.py", file))
		}, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			savedRun(t, func(do func(string, any) (string, error), file string) {
				if err := tc.make(t, file); err != nil {
					if runtime.GOOS == "windows" {
						t.Skip(err)
					}
					t.Fatal(err)
				}
				for _, op := range []string{"saved.read", "saved.write"} {
					got, err := do(op, fields{"revision": "", "text": "x"})
					if tc.want == "" {
						if err != nil {
							t.Errorf("%s: %v", op, err)
						}
						continue
					}
					e, ok := errors.AsType[*hostfuncs.Error](err)
					if !ok || e.Kind != kindMCPError || !strings.Contains(e.Message, tc.want) {
						t.Errorf("%s: got %s, %v, want …%s…", op, got, err, tc.want)
					}
				}
			})
		})
	}
}

func TestSavedToolsErrors(t *testing.T) {
	savedRun(t, func(do func(string, any) (string, error), file string) {
		_, err := do("saved.write", fields{"revision": "", "text": strings.Repeat("x", maxToolFile+1)})
		if e, ok := errors.AsType[*hostfuncs.Error](err); !ok || e.Kind != kindLimitExceeded {
			t.Errorf("too large: %v", err)
		}
		_, err = do("saved.forget", fields{})
		if e, ok := errors.AsType[*hostfuncs.Error](err); !ok || e.Kind != hostfuncs.KindUnsupported {
			t.Errorf("unknown: %v", err)
		}
		if _, err := do("saved.read", "no object"); err == nil || !strings.Contains(err.Error(), "saved.read: ") {
			t.Errorf("odd parameters: %v", err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("something was written")
		}
	})
	_, _, err := ask(t, &fakeUpstreams{}, RunRequest{}, "saved.read", fields{})
	if e, ok := errors.AsType[*hostfuncs.Error](err); !ok || e.Kind != kindMCPError || !strings.Contains(e.Message, "set CODEEXEC_STATE_DIR") {
		t.Errorf("without a directory: %v", err)
	}
}

func TestStateOfSavedToolsIsTold(t *testing.T) {
	state := t.TempDir()
	f := newToolFile(state, filepath.Join(state, "lock"))
	if got := f.state(); got != "" {
		t.Errorf("without a file it is %q", got)
	}
	seen := map[string]bool{}
	revision := ""
	for _, text := range []string{"1", "22", "333"} {
		if ok, err := f.write(t.Context(), revision, text); !ok || err != nil {
			t.Fatal(ok, err)
		}
		read, err := f.read()
		if err != nil {
			t.Fatal(err)
		}
		revision = read.Revision
		if s := f.state(); s == "" || seen[s] {
			t.Errorf("after %q it is %q again", text, s)
		} else {
			seen[s] = true
		}
	}
	if got := (*toolFile)(nil).state(); got != "" {
		t.Errorf("without a directory it is %q", got)
	}
}
