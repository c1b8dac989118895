package main

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// inMounts runs a shell script in a namespace where it may mount file systems, or skips the test.
func inMounts(t *testing.T, script string) string {
	t.Helper()
	for _, program := range []string{"unshare", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if out, err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", t.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("can't mount: %s", out)
	}
	out, err := exec.Command("unshare", "-rm", "sh", "-euc", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// Where nothing can be written, scripts and users are told so, and what there was stays as it was.
func TestFullAndReadOnlyDisks(t *testing.T) {
	state := t.TempDir()
	t.Setenv("CODEEXEC_STATE_DIR", state)
	t.Setenv("CODEEXEC_CACHE_DIR", freshCache(t))
	t.Setenv("DISK", filepath.Join(state, "user_tools"))
	work := t.TempDir()
	t.Setenv("WORK", work)
	for name, text := range map[string]string{
		"small/__init__.py": "version = 1\n",
		"save.py":           "def tool(): return 1\nprint(save_tool(tool))\nprint(save_memory('k', 1))\n",
		"replace.py": "def attempt(fn, *args):\n    try:\n        print('done:', fn(*args))\n    except Exception as error:\n        print(type(error).__name__, error)\n\n" +
			"def tool(): return 2\nattempt(save_tool, tool)\nattempt(delete_saved_tool, 'tool')\nattempt(save_memory, 'k', 'x' * 5000)\nattempt(update_memory, 'k', lambda k: 'x' * 5000)\nprint(user_tools.tool(), load_memory('k'))\n",
	} {
		path := filepath.Join(work, filepath.FromSlash(name))
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const prepare = `
mkdir -p "$DISK"
mount -t tmpfs -o size=1m tmpfs "$DISK"
codeexec exec "$WORK/save.py" >/dev/null
echo 'version = 1' >"$WORK/small/__init__.py"
rm -f "$WORK"/small/m*.py
codeexec packages add "$WORK/small" >/dev/null
`
	const attempts = `
state() { (cd "$DISK" && find . | sort && find . -type f -exec cksum {} + | sort); }
state >"$WORK/before"
codeexec exec "$WORK/replace.py"
echo 'version = 2' >"$WORK/small/__init__.py"
for i in 1 2 3 4 5 6 7 8; do echo "$i" >"$WORK/small/m$i.py"; done
codeexec packages add "$WORK/small" 2>&1
echo "exit code $?"
codeexec saved delete tool 2>&1
echo "exit code $?"
state >"$WORK/after"
diff "$WORK/before" "$WORK/after"
codeexec exec -c 'import small; print(small.version, tool())'
`
	tests := []struct{ name, fault, reason string }{
		{"full", `dd if=/dev/zero of="$DISK/filler" bs=4k 2>/dev/null`, "no space left on device"},
		{"read-only", `mount -o remount,ro "$DISK"`, "read-only file system"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := inMounts(t, prepare+"set +e\n"+tc.fault+attempts)
			saving := "MCPError saved tools: /projects/user_tools.py can't be written: " + tc.reason + "\n"
			want := saving + saving + strings.Repeat("MCPError saving memory \"k\": "+tc.reason+"\n", 2) + "1 1\n" +
				"codeexec: adding small 0 to " + filepath.Join(state, "user_tools", "packages") + ": small/__init__.py: " + tc.reason + "\nexit code 1\n" +
				"codeexec: saved tools: /projects/user_tools.py can't be written: " + tc.reason + "\nexit code 1\n" +
				"1 1\n"
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A process that is killed while it saves a tool leaves the old one or the new one.
func TestAKilledSaveLeavesTheOldOrTheNewTool(t *testing.T) {
	state := t.TempDir()
	t.Setenv("CODEEXEC_STATE_DIR", state)
	t.Setenv("CODEEXEC_CACHE_DIR", freshCache(t))
	file := filepath.Join(state, "user_tools", "user_tools.py")
	filler := strings.Repeat("# Filler.\n    ", 2000)
	script := filepath.Join(t.TempDir(), "script.py")
	text := "def tool():\n    " + filler + "return 1\none = tool\ndef tool():\n    " + filler + "return 2\ntwo = tool\n" +
		"while True:\n    for each in one, two:\n        save_tool(each)\n        print('saved', flush=True)\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	wholes := map[string]bool{}
	rounds := 8
	for range rounds {
		var stderr bytes.Buffer
		cmd := exec.Command("codeexec", "exec", "--timeout", "60", script)
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for begin := time.Now(); time.Since(begin) < patience; time.Sleep(10 * time.Millisecond) {
			if info, err := os.Stat(file); err == nil && info.Size() > 0 {
				break
			}
		}
		time.Sleep(rand.N(300 * time.Millisecond)) // it is the moment that is tested
		cmd.Process.Kill()
		cmd.Wait()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v %s", err, stderr.String())
		}
		wholes[string(data)] = true
	}
	if len(wholes) > 2 {
		t.Errorf("there were %d states of the file: %.300q", len(wholes), slices.Collect(maps.Keys(wholes)))
	}
	out, err := exec.Command("codeexec", "exec", "-c", "print(tool() in (1, 2))").CombinedOutput()
	if err != nil || string(out) != "True\n" {
		t.Errorf("%s, %v", out, err)
	}
}
