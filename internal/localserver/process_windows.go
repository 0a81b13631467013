package localserver

import (
	"os"
	"syscall"
)

// The janitor is a Unix shell: on Windows NewGroup fails when it starts it.
// The embedded engine and servers by URL work there.
func ownProcessGroup() *syscall.SysProcAttr { return nil }

func killGroup(p *os.Process) error { return p.Kill() }
