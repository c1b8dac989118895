//go:build unix

package upstream

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// SuperviseMain is the main function of a supervisor: it runs the program
// args[1] with the arguments after it (args[0] is "--") on its own standard
// streams, and ends the program, with everything that the program started,
// when the pipe on descriptor 3 ends. It returns when nothing of it is left,
// with the program's exit status, or 128 and the number of the signal that
// ended it.
//
// It must be called from the main goroutine of a process of its own, early:
//
//	if len(os.Args) > 1 && os.Args[1] == upstream.SuperviseArg {
//		os.Exit(upstream.SuperviseMain(os.Args[2:]))
//	}
func SuperviseMain(args []string) int {
	if len(args) < 2 || args[0] != "--" {
		fmt.Fprintf(os.Stderr, "codeexec: %s is for codeexec's own use\n", SuperviseArg)
		return 2
	}
	// On Linux the program gets a signal when this *thread* ends.
	runtime.LockOSThread()
	syscall.CloseOnExec(superviseFD)
	control := os.NewFile(superviseFD, "control")
	if info, err := control.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		fmt.Fprintf(os.Stderr, "codeexec: %s is for codeexec's own use: there is no control pipe\n", SuperviseArg)
		return 2
	}
	// Caught and not ignored: the program would inherit that.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	adoptOrphans()

	program, err := os.StartProcess(args[1], args[1:], &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   childAttributes(),
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "codeexec: %v\n", err)
		return 127
	}
	pid := program.Pid
	program.Release()
	// The program must be the only one to hold its ends.
	os.Stdin.Close()
	os.Stdout.Close()

	status := make(chan syscall.WaitStatus, 1)
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		reap(pid, status)
	}()
	commands := make(chan byte)
	go func() {
		defer close(commands)
		var b [1]byte
		for {
			if n, err := control.Read(b[:]); n == 0 || err != nil {
				return
			}
			commands <- b[0]
		}
	}()

	var deadline <-chan time.Time
	terminate := func() {
		syscall.Kill(-pid, syscall.SIGTERM)
		if deadline == nil {
			deadline = time.After(stopGrace)
		}
	}
	for {
		select {
		case command, open := <-commands:
			switch {
			case !open:
				commands = nil
				terminate()
			case command == controlTerminate:
				syscall.Kill(-pid, syscall.SIGTERM)
			case command == controlKill:
				killAll(pid)
			}
		case <-signals:
			terminate()
		case <-deadline:
			killAll(pid)
		case ws := <-status:
			killRest(pid, reaped)
			if ws.Signaled() {
				return signalStatus + int(ws.Signal())
			}
			return ws.ExitStatus()
		}
	}
}

// reap waits for every child, also for orphans that were adopted, until there
// are none, and sends the status of pid.
func reap(pid int, status chan<- syscall.WaitStatus) {
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return // no children
		case got == pid && (ws.Exited() || ws.Signaled()):
			status <- ws
		}
	}
}

// killRest kills what the program left behind, until nothing is left.
func killRest(pid int, reaped <-chan struct{}) {
	giveUp := time.After(killGrace)
	for {
		killAll(pid)
		select {
		case <-reaped:
			return
		case <-giveUp:
			return
		case <-time.After(10 * time.Millisecond): // it may have been forking
		}
	}
}

// killAll kills the program's group and everything that descends from it.
func killAll(pid int) {
	syscall.Kill(-pid, syscall.SIGKILL)
	for _, descendant := range descendants(os.Getpid()) {
		syscall.Kill(descendant, syscall.SIGKILL)
	}
}
