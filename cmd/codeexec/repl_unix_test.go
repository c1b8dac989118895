//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// Somebody types at a terminal: blocks are indented, Tab completes, Ctrl-C stops what runs and keeps the
// variables, and what was typed is there the next day.
func TestReplAtATerminal(t *testing.T) {
	t.Setenv("CODEEXEC_STATE_DIR", t.TempDir())
	t.Setenv("CODEEXEC_CACHE_DIR", freshCache(t))
	t.Setenv("INPUTRC", filepath.Join(t.TempDir(), "none"))

	c := startRepl(t, "NO_COLOR=1", "TERM=xterm")
	c.expect(`exit\(\) leaves.*` + newPrompt)
	c.typed("def f(a):\r", `def f\(a\):[^\n]*\n`)
	c.typed("return 'xyz' + str(a)\r", `    return 'xyz' \+ str\(a\)[^\n]*\n`)
	c.typed("\r", newPrompt)
	c.typed("f(3)\r", `'xyz3'.*`+newPrompt)
	c.typed("import keyw\t", `import keyword`)
	c.typed("\r", newPrompt)
	c.typed("keyword.iskeyw\t", `keyword\.iskeyword`)
	c.typed("('if')\r", `True.*`+newPrompt)
	c.typed("f(k\t", `keyword`) // the menu
	c.typed("\x03", ``)         // leaves it
	c.typed("\x03", newPrompt)  // and the line
	c.typed("é = 'ü'; é * 3\r", `'üüü'.*`+newPrompt)
	c.typed("import time; time.sleep(1000)\r", `sleep\(1000\)`)
	time.Sleep(300 * time.Millisecond) // it may be interrupted before that, and then it is a key of the prompt
	c.typed("\x03", `cancelled.*`+newPrompt)
	c.typed("f(4)\r", `'xyz4'.*`+newPrompt)
	c.typed("1/0\r", `ZeroDivisionError.*`+newPrompt)
	c.typed("half a line\x03", newPrompt)
	c.typed("\x04", ``)
	c.ends(0)

	c = startRepl(t, "TERM=xterm-256color")
	c.expect(`exit\(\) leaves.*` + newPrompt)
	c.typed("\x1b[A", `1.*/.*0`) // up
	c.typed("\x1b[A", `f.*4`)
	c.typed("\x03", newPrompt)
	c.typed("None is not 1.5\r", "\x1b\\[35m.*None.*\x1b\\[33m.*1\\.5.*"+newPrompt)
	c.typed("import sys; sys.exit(7)\r", ``)
	c.ends(7)
}

// newPrompt matches a prompt at which nothing has been typed: it is followed by the shape of the cursor.
const newPrompt = `>>> [^ ]{0,20}\x1b\[1 q`

// A console is a program at a terminal.
type console struct {
	t   *testing.T
	cmd *exec.Cmd
	tty *os.File

	mu     sync.Mutex
	screen strings.Builder // what it has printed since the last expectation was met
	more   chan struct{}   // gets a token when there is more, and is closed at the end
}

func startRepl(t *testing.T, env ...string) *console {
	self, err := exec.LookPath("codeexec")
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, cmd: exec.Command(self, "repl"), more: make(chan struct{}, 1)}
	c.cmd.Env = append(os.Environ(), env...)
	c.tty, err = pty.StartWithSize(c.cmd, &pty.Winsize{Rows: 50, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it has ended, unless the test failed
		c.tty.Close()
	})
	go func() {
		defer close(c.more)
		buffer := make([]byte, 4096)
		var query []byte // what has been read of a question where the cursor is
		for {
			n, err := c.tty.Read(buffer)
			c.mu.Lock()
			c.screen.Write(buffer[:n])
			c.mu.Unlock()
			query = append(query, buffer[:n]...)
			for {
				_, rest, asked := bytes.Cut(query, []byte("\x1b[6n"))
				if !asked {
					break
				}
				query = rest
				if _, err := c.tty.WriteString("\x1b[1;5R"); err != nil {
					return
				}
			}
			query = query[max(len(query)-3, 0):]
			select {
			case c.more <- struct{}{}:
			default:
			}
			if err != nil {
				return // on Linux, EIO: the program has left
			}
		}
	}()
	return c
}

// typed types keys, and waits for what must appear then.
func (c *console) typed(keys, pattern string) {
	c.t.Helper()
	c.settle()
	c.mu.Lock()
	c.screen.Reset()
	c.mu.Unlock()
	if _, err := c.tty.WriteString(keys); err != nil {
		c.t.Fatalf("typing %q: %v", keys, err)
	}
	c.expect(pattern)
}

// settle waits until nothing more is drawn. The editor hides the cursor while it draws, and asks where it is: keys
// that come together with the answer are lost to it.
func (c *console) settle() {
	for {
		select {
		case _, ok := <-c.more:
			if !ok {
				return
			}
		case <-time.After(150 * time.Millisecond):
			c.mu.Lock()
			screen := c.screen.String()
			c.mu.Unlock()
			if strings.LastIndex(screen, "\x1b[?25h") >= strings.LastIndex(screen, "\x1b[?25l") {
				return
			}
		}
	}
}

// expect waits until the terminal shows something.
func (c *console) expect(pattern string) {
	c.t.Helper()
	re := regexp.MustCompile("(?s)" + pattern)
	deadline := time.After(20 * time.Second)
	for {
		c.mu.Lock()
		screen := c.screen.String()
		c.mu.Unlock()
		if re.MatchString(screen) {
			return
		}
		select {
		case _, ok := <-c.more:
			if !ok {
				c.t.Fatalf("it ended; want %q in %q", pattern, screen)
			}
		case <-deadline:
			c.t.Fatalf("no %q in %q", pattern, screen)
		}
	}
}

// ends waits until the program has left with an exit code.
func (c *console) ends(code int) {
	c.t.Helper()
	for range c.more {
	}
	_ = c.cmd.Wait() // its error is the exit code
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		c.t.Errorf("exit code %d, want %d", got, code)
	}
}
