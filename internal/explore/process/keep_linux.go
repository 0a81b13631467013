package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// keeperName is the name of a keeper in ps(1), by which Keep recognizes it.
const keeperName = "oversell-keeper"

// Keep returns at once, except in a keeper: there it does the keeper's work and never returns. Every main and TestMain
// of a binary that uses this package must call it first.
func Keep() {
	if os.Args[0] != keeperName {
		return
	}
	runtime.LockOSThread() // children get SIGKILL when the thread that forked them ends
	// Catch the signals. A child would inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGPIPE)
	control := os.NewFile(3, "explorer")
	c, err := net.FileConn(control)
	if err != nil {
		os.Exit(1)
	}
	_ = control.Close()
	explorer, ok := c.(*net.UnixConn)
	if !ok || send(explorer, message{Do: "ready"}) != nil {
		os.Exit(1)
	}
	for {
		m, err := receive(explorer)
		if err != nil {
			os.Exit(0) // the explorer has ended
		}
		answer := message{}
		switch m.Do {
		case "network":
			err = bringUp()
		case "address":
			err = addAddress(m.Line)
		case "socket":
			answer.files, err = sockets(m.IPv6, m.Count)
		case "diag":
			var f *os.File
			if f, err = diagSocket(); err == nil {
				answer.files = []*os.File{f}
			}
		case "spawn":
			err = spawn(m.files)
		case "run":
			run(explorer, m)
		default:
			err = fmt.Errorf("unknown request %q", m.Do)
		}
		closeAll(m.files)
		if err != nil {
			answer.Error = err.Error()
		}
		if send(explorer, answer) != nil {
			os.Exit(0)
		}
		closeAll(answer.files)
	}
}

// bringUp makes the network namespace usable: it starts the loopback interface (netdevice(7)), and lets the program's
// user bind to every port (ip(7)).
func bringUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("loopback up: %w", err)
	}
	_ = os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0)
	return nil
}

// sockets opens sockets in this network namespace, which any process can then use.
func sockets(ipv6 bool, count int) (all []*os.File, err error) {
	family := unix.AF_INET
	if ipv6 {
		family = unix.AF_INET6
	}
	for range count {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			closeAll(all)
			return nil, fmt.Errorf("socket: %w", err)
		}
		all = append(all, os.NewFile(uintptr(fd), "socket"))
	}
	return all, nil
}

// spawn starts the keeper of a program. The files must be the keeper's connection and log.
func spawn(files []*os.File) error {
	if len(files) != 2 {
		return errors.New("a keeper needs a connection and a log")
	}
	cmd := command(files[0], files[1], unix.CLONE_NEWPID)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// run starts the program, reports the end of its first process, and reaps orphans. It never returns.
func run(explorer *net.UnixConn, m message) {
	isolated := os.Getpid() == 1
	if !isolated {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if isolated && m.PID > 0 { // without the right to choose an id (pid_namespaces(7)), the program gets any id
		_ = os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(m.PID-1)), 0)
	}
	// The program must not get the keeper's capabilities in the user namespace (capabilities(7)).
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	pid, err := execute(m)
	answer := message{}
	if err != nil {
		answer.Error = err.Error()
	}
	gone := send(explorer, answer) != nil
	if err != nil {
		os.Exit(1)
	}
	go func() {
		if !gone {
			_, _ = receive(explorer) // returns when the connection ends, since the explorer sends nothing more
		}
		if !isolated { // in a PID namespace, the kernel kills the children
			killChildren()
		}
		os.Exit(0)
	}()
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // there are no children
			select {}
		case ended == pid:
			_ = send(explorer, message{Do: "ended", Error: how(status)})
		}
	}
}

// execute starts `sh -c`, with the stderr of this process as stdout and stderr.
func execute(m message) (pid int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	pid, err = syscall.ForkExec("/bin/sh", []string{"sh", "-c", line(m)}, &syscall.ProcAttr{
		Dir: m.Dir, Env: m.Env, Files: []uintptr{null.Fd(), 2, 2}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		if _, wrong := os.Stat(m.Dir); m.Dir != "" && wrong != nil {
			return 0, wrong
		}
		return 0, fmt.Errorf("/bin/sh: %w", err)
	}
	return pid, nil
}

// line prepares a command line for the shell. A plain command replaces the shell, so there is one process less to observe.
func line(m message) string {
	name, _, _ := strings.Cut(strings.TrimSpace(m.Line), " ")
	if name == "" || strings.ContainsAny(m.Line, ";&|(){}\n") || strings.ContainsAny(name, "=$`'\"\\*?[~<>!#") {
		return m.Line
	}
	if strings.Contains(name, "/") {
		return "exec " + strings.TrimSpace(m.Line)
	}
	for _, v := range m.Env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			for _, dir := range strings.Split(path, ":") {
				if found, err := exec.LookPath(dir + "/" + name); err == nil && found != "" && dir != "" {
					return "exec " + strings.TrimSpace(m.Line)
				}
			}
		}
	}
	return m.Line // a builtin or an unknown command: the shell reports it
}

// how describes a wait status in the same words as os/exec.
func how(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// killChildren kills all descendants of this process, until none is left. Orphans become its children.
func killChildren() {
	for {
		below, err := descendants(os.Getpid())
		if err != nil || len(below.pids) == 0 && !below.torn {
			return
		}
		for _, pid := range below.pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	}
}
