package upstream

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// stderrTail is how many bytes of a server's stderr are kept.
	stderrTail = 64 << 10
	// stopGrace is how long a server may take to exit after its stdin was
	// closed, and again after it was asked to terminate.
	stopGrace = time.Second
	// killGrace is how long the operating system may take to end what was
	// killed before we stop waiting.
	killGrace = 3 * time.Second
)

// A command is what a process runs.
type command struct {
	path string // absolute
	args []string
	env  []string
	dir  string // empty means our own
	// supervisor is the command line that runs [SuperviseMain], or empty.
	supervisor []string
}

// A process is a running server with everything that it started.
type process struct {
	cmd    *exec.Cmd
	group  group
	stdin  *os.File
	stdout *os.File
	stderr *tail

	exited  chan struct{} // closed when the program has exited and err is set
	err     error         // how it exited
	drained chan struct{} // closed when its stderr is at its end
	stopped sync.Once
}

// startProcess starts a program with pipes as its standard streams.
func startProcess(c command) (_ *process, err error) {
	if c.dir != "" {
		// Or else the error would blame the program for what is missing.
		if info, err := os.Stat(c.dir); err != nil {
			return nil, fmt.Errorf("its working directory can't be used: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("its working directory %s is not a directory", c.dir)
		}
	}
	var files []*os.File
	defer func() {
		if err != nil {
			closeAll(files)
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				files = append(files, r, w)
			}
		}
		return r, w
	}
	stdin, ourStdin := pipe()
	ourStdout, stdout := pipe()
	ourStderr, stderr := pipe()
	if err != nil {
		return nil, fmt.Errorf("making pipes for it: %w", err)
	}

	argv := append([]string{c.path}, c.args...)
	if len(c.supervisor) > 0 && canSupervise {
		argv = append(append(append([]string(nil), c.supervisor...), "--"), argv...)
	}
	p := &process{
		cmd:   exec.Command(argv[0], argv[1:]...),
		stdin: ourStdin, stdout: ourStdout, stderr: newTail(stderrTail),
		exited: make(chan struct{}), drained: make(chan struct{}),
	}
	p.cmd.Env, p.cmd.Dir = c.env, c.dir
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, stderr
	if err = p.group.start(p.cmd, len(argv) > len(c.args)+1); err != nil {
		return nil, fmt.Errorf("starting it: %w", err)
	}
	closeAll([]*os.File{stdin, stdout, stderr})

	go func() {
		io.Copy(p.stderr, ourStderr)
		ourStderr.Close()
		close(p.drained)
	}()
	go func() {
		p.err = p.cmd.Wait()
		p.group.exited()
		close(p.exited)
		p.stdin.Close()
		// Both pipes end when the last process that holds them is gone, which
		// is now, unless one got away from its group. Nobody waits for that.
		select {
		case <-p.drained:
		case <-time.After(stopGrace):
			ourStderr.Close()
		}
	}()
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// stop ends the process as the MCP specification wants it
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#shutdown):
// it closes stdin, then asks to terminate, then kills. It returns when nothing
// of the process is left, or when killing didn't help.
func (p *process) stop() {
	p.stopped.Do(func() {
		p.stdin.Close()
		if !p.gone(stopGrace) {
			p.group.terminate()
			if !p.gone(stopGrace) {
				p.group.kill()
				if !p.gone(killGrace) {
					p.cmd.Process.Kill()
					p.gone(killGrace)
				}
			}
		}
		p.stdout.Close()
	})
}

// postmortem says why the pipes broke, which they have. A process that crashed
// is gone as soon as its stdout is, and with it its stderr. One that merely
// closed its stdout isn't.
func (p *process) postmortem() (stderr string, err error) {
	const patience = 2 * time.Second
	err = errors.New("it closed its standard output")
	if p.gone(patience) {
		err = p.obituary()
		select {
		case <-p.drained:
		case <-time.After(patience):
		}
	}
	return p.stderr.String(), err
}

// stderrTail returns what is kept of its stderr.
func (p *process) stderrTail() string { return p.stderr.String() }

// gone waits for the process to exit.
func (p *process) gone(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// obituary says how the process exited. It must have.
func (p *process) obituary() error {
	var exit *exec.ExitError
	switch {
	case p.err == nil:
		return errors.New("it exited")
	case !errors.As(p.err, &exit):
		return fmt.Errorf("it exited: %w", p.err)
	}
	code := exit.ExitCode()
	if code < 0 {
		return fmt.Errorf("it was ended by a signal (%v)", exit)
	}
	if sig := code - signalStatus; p.group.supervised() && sig > 0 && sig < 32 {
		return fmt.Errorf("it was ended by a signal (%v)", syscall.Signal(sig))
	}
	return fmt.Errorf("it exited with status %d", code)
}

// signalStatus is added to the number of the signal that ended a program to
// make the exit status of its supervisor, as shells do.
const signalStatus = 128

// A tail keeps the last bytes of what is written to it.
type tail struct {
	mu   sync.Mutex
	ring []byte
	next int  // where the next byte goes
	full bool // whether the ring has been filled once
}

func newTail(size int) *tail { return &tail{ring: make([]byte, size)} }

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if n >= len(t.ring) {
		copy(t.ring, p[n-len(t.ring):])
		t.next, t.full = 0, true
		return n, nil
	}
	if k := copy(t.ring[t.next:], p); k < n {
		t.next, t.full = copy(t.ring, p[k:]), true
	} else {
		t.next += k
	}
	return n, nil
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.full {
		return string(t.ring[:t.next])
	}
	return string(t.ring[t.next:]) + string(t.ring[:t.next])
}
