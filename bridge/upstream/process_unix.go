//go:build unix

package upstream

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// canSupervise says that [SuperviseMain] works here.
const canSupervise = true

// A group is a process and those it started, as they can be signalled
// together. Without a supervisor it is a process group; with one, the
// supervisor does the signalling, as it knows the processes that left the
// group.
type group struct {
	leader  *os.Process
	control *os.File // to the supervisor; nil if there is none
}

// start starts cmd as the leader of its own session, so that a Ctrl-C meant
// for us doesn't reach it, and it can't wait for input from our terminal.
func (g *group) start(cmd *exec.Cmd, supervised bool) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if supervised {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer r.Close()
		cmd.ExtraFiles = []*os.File{r} // superviseFD
		g.control = w
	}
	if err := cmd.Start(); err != nil {
		if g.control != nil {
			g.control.Close()
		}
		return err
	}
	g.leader = cmd.Process
	return nil
}

func (g *group) supervised() bool { return g.control != nil }

// terminate asks the group to end.
func (g *group) terminate() { g.signal(controlTerminate, syscall.SIGTERM) }

// kill ends the group.
func (g *group) kill() { g.signal(controlKill, syscall.SIGKILL) }

func (g *group) signal(command byte, sig syscall.Signal) {
	if g.control != nil {
		g.control.Write([]byte{command})
	} else {
		syscall.Kill(-g.leader.Pid, sig)
	}
}

// exited is called when the leader has exited. The rest of the group goes with
// it; a supervisor has seen to that already.
func (g *group) exited() {
	if g.control != nil {
		g.control.Close()
		return
	}
	// What was killed takes a moment to go. It may stay as a zombie if nobody
	// reaps it, which isn't worth waiting for.
	for deadline := time.Now().Add(killGrace / 4); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if syscall.Kill(-g.leader.Pid, syscall.SIGKILL) == syscall.ESRCH {
			return
		}
	}
}
