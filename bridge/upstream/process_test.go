//go:build linux

package upstream

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeexec/bridge/config"
	"codeexec/testdata/npm"
)

// alive reports whether a process exists and isn't a zombie.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return !strings.HasPrefix(string(data[strings.LastIndexByte(string(data), ')')+1:]), " Z")
}

func noneAlive(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d lives", pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Nothing of a server is left after Close, however it resists.
func TestCloseLeavesNothing(t *testing.T) {
	tests := []struct {
		name  string
		flags []string
		pids  int
		grace int // how many graces it takes
	}{
		{"ends with its stdin", nil, 1, 0},
		{"ignores the end of stdin", []string{"-ignore-eof"}, 1, 1},
		{"ignores the end of stdin and SIGTERM", []string{"-ignore-eof", "-ignore-term"}, 1, 2},
		{"leaves a process in its group", []string{"-spawn", "group"}, 2, 0},
		{"leaves a process in another session", []string{"-spawn", "session"}, 2, 0},
		{"resists with all of it", []string{"-spawn", "session", "-ignore-eof", "-ignore-term"}, 2, 2},
	}
	for _, tc := range tests {
		for _, supervised := range []bool{true, false} {
			if !supervised && strings.Contains(strings.Join(tc.flags, " "), "session") {
				continue // out of reach without a supervisor
			}
			t.Run(fmt.Sprintf("%s, supervised %v", tc.name, supervised), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "pids")
				opts := Options{Supervisor: []string{}}
				if supervised {
					opts.Supervisor = nil // start puts it in
				}
				m := start(t, opts, stubServer(append(tc.flags, "-pid-file", file)...))
				call(t, m, "echo", "")
				pids := readPids(t, file)
				if len(pids) != tc.pids {
					t.Fatalf("processes %v, want %d", pids, tc.pids)
				}
				children := descendants(os.Getpid())
				before := time.Now()
				closeManager(t, m)
				took := time.Since(before)
				noneAlive(t, pids)
				noneAlive(t, children)
				if least := time.Duration(tc.grace) * stopGrace; took < least {
					t.Errorf("Close took %v, less than %v", took, least)
				}
			})
		}
	}
}

func TestCloseEndsServersSideBySide(t *testing.T) {
	var servers []config.Server
	for i := range 6 {
		s := stubServer("-ignore-eof", "-ignore-term")
		s.Name = fmt.Sprint("s", i)
		servers = append(servers, s)
	}
	m := start(t, Options{}, servers...)
	for _, s := range servers {
		if _, err := m.Call(limit(t), s.Name, "echo", nil); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now()
	closeManager(t, m)
	if took := time.Since(before); took > 8*time.Second { // 12 s one by one
		t.Errorf("Close took %v", took)
	}
}

// What a crashed server started goes with it.
func TestCrashTakesGrandchildrenWithIt(t *testing.T) {
	for _, how := range []string{"group", "session"} {
		t.Run(how, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pids")
			m := start(t, Options{}, stubServer("-spawn", how, "-pid-file", file))
			call(t, m, "echo", "")
			pids := readPids(t, file)
			_, err := m.Call(limit(t), "stub", "crash", nil)
			unavailable(t, err)
			eventually(t, "all processes are gone", func() bool { return !alive(pids[0]) && !alive(pids[1]) })
		})
	}
}

func TestNothingLeaks(t *testing.T) {
	round := func() {
		m := start(t, Options{ProbeTimeout: 500 * time.Millisecond},
			stubServer("-tools", "5"),
			config.Server{Name: "absent", Command: "no-such-program"},
			config.Server{Name: "silent", Command: stub, Args: []string{"-mute", "server/discover", "-version", "2025-11-25"}},
		)
		call(t, m, "echo", "")
		m.Tools(limit(t), "absent")
		m.Tools(limit(t), "silent")
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		m.Call(ctx, "stub", "block", nil)
		cancel()
		m.Call(limit(t), "stub", "crash", nil)
		call(t, m, "echo", "")
		closeManager(t, m)
	}
	round() // what is made once is made now
	files, routines := openFiles(t), runtime.NumGoroutine()
	for range 3 {
		round()
	}
	eventually(t, "descriptors and goroutines are as before", func() bool {
		return openFiles(t) <= files && runtime.NumGoroutine() <= routines
	})
	if children := descendants(os.Getpid()); len(children) > 0 {
		t.Errorf("children %v", children)
	}
}

// Nothing survives the death of this process by a signal that it can't catch.
func TestKill9LeavesNothing(t *testing.T) {
	for _, flags := range [][]string{
		{}, {"-ignore-eof"}, {"-ignore-eof", "-ignore-term", "-spawn", "group"}, {"-ignore-eof", "-ignore-term", "-spawn", "session"},
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pids")
			args := append([]string{victimArg, stub, "-pid-file", file}, flags...)
			victim := exec.Command(os.Args[0], args...)
			victim.Stderr = os.Stderr
			stdout, err := victim.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
				t.Fatalf("the victim says %q", line)
			}
			pids := append(readPids(t, file), descendants(victim.Process.Pid)...)
			if len(pids) < 3 { // the server twice, and its supervisor
				t.Fatalf("processes %v", pids)
			}
			victim.Process.Kill()
			victim.Wait()
			eventually(t, "all processes are gone", func() bool {
				for _, pid := range pids {
					if alive(pid) {
						return false
					}
				}
				return true
			})
		})
	}
}

// If somebody kills the supervisor, the server goes with it and is started
// again.
func TestKillingTheSupervisor(t *testing.T) {
	m := start(t, Options{}, stubServer("-ignore-eof", "-ignore-term"))
	pid := field[int](t, call(t, m, "process", ""), "pid")
	supervisor := m.servers["stub"].link.backend.(*process).cmd.Process
	supervisor.Kill()
	eventually(t, "the server is gone", func() bool { return !alive(pid) })
	eventually(t, "it is seen", func() bool { return m.Servers()[0].Status == StatusFailed })
	call(t, m, "echo", "")
}

func TestSuperviseMainRefusesOtherUse(t *testing.T) {
	for _, args := range [][]string{{}, {"--"}, {"x", "y"}, {"--", stub}} {
		cmd := exec.Command(os.Args[0], append([]string{SuperviseArg}, args...)...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), "codeexec's own use") {
			t.Errorf("%q: status %d, %s", args, code, out)
		}
	}
}

func TestASupervisedProgramThatCantBeStarted(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("not a program"), 0o700); err != nil {
		t.Fatal(err)
	}
	m := start(t, Options{}, config.Server{Name: "stub", Command: script})
	_, err := m.Tools(limit(t), "stub")
	if got := unavailable(t, err).Error(); !strings.Contains(got, "exec format error") {
		t.Errorf("err = %s", got)
	}
}

// npx starts npm, which starts a shell, which starts node.
func TestNPXLeavesNothing(t *testing.T) {
	bin := npm.Need(t, npm.Bin)
	m := start(t, Options{StartTimeout: time.Minute}, config.Server{
		Name: "stub", Command: "npx", Args: []string{"--no-install", "mcp-server-everything"},
		Cwd: filepath.Dir(filepath.Dir(bin)),
	})
	call(t, m, "echo", `{"message": "hi"}`)
	children := descendants(os.Getpid())
	if len(children) < 3 {
		t.Fatalf("processes %v", children)
	}
	closeManager(t, m)
	noneAlive(t, children)
}
