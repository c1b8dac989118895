package upstream

import (
	"os/exec"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// canSupervise is false because Windows needs no supervisor: a job object ends
// with the last handle to it, however its holder died.
const canSupervise = false

// A group is a job object: a process and all those it started.
type group struct {
	job windows.Handle
}

// start starts cmd in a new job. What the program starts in the instant before
// it is assigned to the job isn't in it.
func (g *group) start(cmd *exec.Cmd, _ bool) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		windows.CloseHandle(job)
		return err
	}
	cmd.SysProcAttr = &windows.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	if isBatch(cmd.Path) {
		if err := interpret(cmd); err != nil {
			windows.CloseHandle(job)
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		windows.CloseHandle(job)
		return err
	}
	if err := assign(job, cmd.Process.Pid); err != nil {
		windows.CloseHandle(job)
		cmd.Process.Kill()
		cmd.Wait()
		return err
	}
	g.job = job
	return nil
}

// interpret has a batch file run by cmd.exe.
func interpret(cmd *exec.Cmd) error {
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return err
	}
	interpreter := filepath.Join(system, "cmd.exe")
	line, err := batchLine(interpreter, cmd.Path, cmd.Args[1:])
	if err != nil {
		return err
	}
	cmd.Path, cmd.SysProcAttr.CmdLine = interpreter, line
	return nil
}

func assign(job windows.Handle, pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	return windows.AssignProcessToJobObject(job, process)
}

func (g *group) supervised() bool { return false }

// terminate does nothing: there is no way to ask a Windows program without a
// window to end, other than closing its stdin.
func (g *group) terminate() {}

// kill ends the group.
func (g *group) kill() { windows.TerminateJobObject(g.job, 1) }

// exited is called once the leader has exited; the rest goes with it.
func (g *group) exited() { windows.CloseHandle(g.job) }
