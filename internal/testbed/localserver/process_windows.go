package localserver

import (
	"os"
	"os/exec"
	"syscall"
)

// Windows cannot stop a process with a signal, so Freeze fails there.
const (
	sigStop = syscall.Signal(0x13)
	sigCont = syscall.Signal(0x12)
)

// The janitor, which removes servers after a crash of this process, is a Unix shell. So NewGroup fails on
// Windows. The embedded engine and servers by URL work there.
func ownProcessGroup(*exec.Cmd) {}

func runAs(*exec.Cmd, int, int) {}

func killGroup(p *os.Process) error { return p.Kill() }

func killSessions(*os.Process) []int { return nil }

func signalChildren(*os.Process, syscall.Signal) error { return nil }

func awaitStop(int) error { return nil }

func ended(int) bool { return true }
