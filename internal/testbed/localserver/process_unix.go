//go:build unix

package localserver

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
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

// runAs makes cmd run as a user of this machine.
func runAs(cmd *exec.Cmd, uid, gid int) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// killGroup kills the process group that p leads.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// killSessions kills the children of p that are in sessions, and so process groups, of
// their own, and returns them. p is stopped first, so that there are no new ones; kill
// it next.
func killSessions(p *os.Process) (killed []int) {
	if p.Signal(syscall.SIGSTOP) != nil {
		return nil
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.Pid, p.Pid)) // Linux
	if err != nil {
		children, _ = exec.Command("pgrep", "-P", strconv.Itoa(p.Pid)).Output()
	}
	for _, child := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed = append(killed, pid)
		}
	}
	return killed
}

// ended reports whether a process that was killed runs no more. Nobody may have asked
// for its end: in a container the first process often does not.
func ended(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil { // Linux: pid (name) state ...
		_, state, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
	}
	return syscall.Kill(pid, 0) != nil
}
