//go:build unix

package localserver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

func ownProcessGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

func runAs(cmd *exec.Cmd, uid, gid int) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// killSessions kills the children of p that have their own sessions, and so their own process groups. It
// returns their ids. It stops p first, so that p starts no more children. The caller must kill p next.
func killSessions(p *os.Process) (killed []int) {
	if p.Signal(syscall.SIGSTOP) != nil || awaitStop(p.Pid) != nil {
		return nil
	}
	for _, pid := range children(p) {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed = append(killed, pid)
		}
	}
	return killed
}

// signalChildren stops or continues the children of p, which must be stopped.
func signalChildren(p *os.Process, signal syscall.Signal) error {
	var errs []error
	for _, pid := range children(p) {
		switch err := syscall.Kill(pid, signal); {
		case errors.Is(err, syscall.ESRCH): // it has just ended
		case err == nil && signal == sigStop:
			errs = append(errs, awaitStop(pid))
		default:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func children(p *os.Process) (pids []int) {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.Pid, p.Pid)) // Linux
	if err != nil {
		list, _ = exec.Command("pgrep", "-P", strconv.Itoa(p.Pid)).Output()
	}
	for _, child := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(child); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// awaitStop waits until every thread of a process has stopped or ended. The kernel delivers SIGSTOP after
// kill(2) has returned, so a thread may run for a moment more. On a busy machine, that was enough to serve a
// whole request. Without /proc, awaitStop returns at once.
func awaitStop(pid int) error {
	for range 10_000 {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if !slices.ContainsFunc(threads, func(stat string) bool { return strings.IndexAny(state(stat), "TZX") != 0 }) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("process %d has not stopped within 10 s of SIGSTOP", pid)
}

// state returns the text from the state on in a file such as /proc/PID/stat: "pid (name) state ...". The name
// may contain brackets. state returns "" if the file does not exist.
func state(stat string) string {
	content, _ := os.ReadFile(stat)
	return strings.TrimPrefix(string(content[bytes.LastIndexByte(content, ')')+1:]), " ")
}

// ended reports whether a killed process no longer runs. A zombie counts as ended: the first process of a
// container is often its parent and may never wait for it.
func ended(pid int) bool {
	if s := state(fmt.Sprintf("/proc/%d/stat", pid)); s != "" { // Linux
		return strings.HasPrefix(s, "Z") || strings.HasPrefix(s, "X")
	}
	return syscall.Kill(pid, 0) != nil
}
