package testbed

import (
	"os"
	"os/exec"
	"strconv"
	"time"
)

// A Command is the command line of `shop serve`. A zero field omits its flag. Tests judge a strategy without
// the sold-out check and admission control, so both are off by default.
type Command struct {
	LogLevel string

	Wait, Lease, Poll time.Duration
	Conns             int // database connections
	MaxInflight       int
	Replicas          int // value of --redis-wait: replicas that must confirm a lock
	SoldOutCheck      bool
	Admission         bool
	Failpoints        bool // accept commands that stop a buyer, and write a history of events
}

// At returns the command that serves at addr. The child writes its standard error to that of this process.
func (c Command) At(addr string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	admission := "off"
	if c.Admission {
		admission = "adaptive"
	}
	cmd := exec.Command(program, "serve", "--addr", addr, "--log-level", c.LogLevel,
		"--sold-out-check="+strconv.FormatBool(c.SoldOutCheck), "--admission", admission)
	for _, flag := range []struct {
		name  string
		value time.Duration
	}{{"--wait", c.Wait}, {"--lease", c.Lease}, {"--poll", c.Poll}} {
		if flag.value > 0 {
			cmd.Args = append(cmd.Args, flag.name, flag.value.String())
		}
	}
	for _, flag := range []struct {
		name  string
		value int
	}{{"--db-conns", c.Conns}, {"--max-inflight", c.MaxInflight}, {"--redis-wait", c.Replicas}} {
		if flag.value > 0 {
			cmd.Args = append(cmd.Args, flag.name, strconv.Itoa(flag.value))
		}
	}
	if c.Failpoints {
		cmd.Args = append(cmd.Args, "--failpoints")
	}
	cmd.Stderr = os.Stderr
	return cmd
}
