package wasmhost_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeexec/wasmhost"
)

// cpythonTests are the modules of CPython's own tests that lean on files, the
// slowest first.
var cpythonTests = []string{
	"test_zipfile", "test_pathlib", "test_os", "test_shutil", "test_mailbox", "test_sqlite3", "test_glob", "test_tempfile",
	"test_filecmp", "test_fileinput", "test_fileio", "test_posixpath",
}

// CPython's own tests pass in the sandbox, in memory and on the host's disk, but
// for the cases that testdata/cpython/skips.txt lists. A listed case that passes
// fails this test, so the list only shrinks.
func TestCPythonsOwnTests(t *testing.T) {
	code, err := os.ReadFile("testdata/cpython/run.py")
	if err != nil {
		t.Fatal(err)
	}
	skips := readSkips(t, "testdata/cpython/skips.txt")
	projects := t.TempDir()
	unpackCPythonTests(t, filepath.Join(projects, "lib"))

	for _, module := range cpythonTests {
		for _, disk := range []string{"/projects", "/tmp"} {
			var mine []skip
			for _, s := range skips {
				if strings.HasPrefix(s.pattern, module+".") && (s.disk == "" || s.disk == disk) {
					mine = append(mine, s)
				}
			}
			t.Run(module+disk, func(t *testing.T) {
				t.Parallel()
				runCPythonTests(t, string(code), module, disk, projects, mine)
			})
		}
	}
}

// runCPythonTests runs a module's tests in a session of their own, in a folder on disk.
func runCPythonTests(t *testing.T, code, module, disk, projects string, skips []skip) {
	omit := []string{}
	for _, s := range skips {
		if s.kind == "omit" {
			omit = append(omit, s.pattern)
		}
	}
	omitted, err := json.Marshal(omit)
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, wasmhost.SessionOptions{Projects: projects})
	r := runFor(t, s, 5*time.Minute, fmt.Sprintf("MODULE = %q\nLIBRARY = '/projects/lib'\nWORK = %q\nOMIT = %s\n%s",
		module, path.Join(disk, "work-"+module), omitted, code))
	if r.Outcome != wasmhost.Success {
		t.Fatalf("%s %s\n%s%s", r.Outcome, r.Reset, r.Stderr, traceback(r))
	}
	var got struct {
		Cases   map[string][2]string // by name: how it ended, and why
		Omitted map[string]int       // cases, by pattern
	}
	printed := bytes.TrimSpace([]byte(r.Stdout.String())) // some tests print, too
	if err := json.Unmarshal(printed[bytes.LastIndexByte(printed, '\n')+1:], &got); err != nil {
		t.Fatalf("%v in %s", err, printed)
	}

	counts := map[string]int{}
	used := map[skip]bool{}
	for name, end := range got.Cases {
		how, why := end[0], end[1]
		counts[how]++
		for _, s := range skips {
			if ok, _ := path.Match(s.pattern, name); !ok || s.kind != "fails" {
				continue
			}
			switch how {
			case "fail":
				how = "listed"
				used[s] = true
			case "pass":
				t.Errorf("%s passes: take it out of the list of skips (%s)", name, s.pattern)
			}
			break
		}
		if how == "fail" {
			t.Errorf("%s: %s", name, why)
		}
	}
	listed := 0
	for _, s := range skips {
		listed += got.Omitted[s.pattern]
		if !used[s] && got.Omitted[s.pattern] == 0 {
			t.Errorf("the list of skips has %s, which is no case of this module on %s that fails", s.pattern, disk)
		}
	}
	t.Logf("%s on %s in %.1f s: %d cases, %d passed, %d skipped by themselves, %d listed as failing, %d listed as not run",
		module, disk, r.Duration.Seconds(), len(got.Cases)+listed, counts["pass"], counts["skip"], counts["fail"], listed)
}

// A skip is a line of the list of skips.
type skip struct {
	kind    string // "fails": it is run, and must fail; "omit": it isn't run
	pattern string // of names, as path.Match has it
	disk    string // where it fails; empty: everywhere
}

func readSkips(t *testing.T, name string) []skip {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var skips []skip
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "fails" && words[0] != "omit" {
			t.Fatalf("%s:%d: a line is: fails or omit, pattern, reason", name, n)
		}
		pattern, disk, _ := strings.Cut(words[1], "@")
		skips = append(skips, skip{words[0], pattern, disk})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return skips
}

// unpackCPythonTests unpacks what python-wasm/build.sh took from CPython's sources.
func unpackCPythonTests(t *testing.T, dir string) {
	t.Helper()
	packed, err := os.Open("../python-wasm/testdata/cpython-tests.tar.gz")
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v; run `make python-wasm`", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unzipped, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(unzipped); ; {
		entry, err := archive.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(entry.Name))
		if entry.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(name), 0o755); err == nil {
			var data []byte
			if data, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(name, data, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
