package process

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Program is a process with all its descendants. Several goroutines may use it.
type Program struct {
	keeper   *keeper // nil if the program was already running at Attach
	isolated bool    // the program is in its own PID namespace
	pidfd    *os.File
	log      *output
	done     chan struct{}
	err      error // set before done is closed
	stop     sync.Once

	mu   sync.Mutex
	tree *tree
	idle idle // timed waits that Baseline recorded
}

// Start starts a program in network s. It fails only if the shell cannot be started. If the command does not exist, the
// shell writes that to the log and ends with exit status 127.
func Start(s *Network, c Command) (*Program, error) {
	log, write, err := newOutput(c.Log)
	if err != nil {
		return nil, err
	}
	k, isolated, err := keep(s, write)
	_ = write.Close()
	if err != nil {
		return nil, errors.Join(err, log.close())
	}
	return k.start(c, isolated, log)
}

func (k *keeper) start(c Command, isolated bool, log *output) (*Program, error) {
	if c.Env == nil {
		c.Env = os.Environ()
	}
	p := &Program{keeper: k, isolated: isolated, log: log, done: make(chan struct{})}
	if _, err := k.ask(message{Do: "run", Line: c.Line, Dir: c.Dir, Env: c.Env, PID: c.PID}); err != nil {
		k.end(isolated)
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Line, err), log.close())
	}
	p.tree = newTree(k.pid, true)
	go p.wait()
	return p, nil
}

// keep starts the keeper of a program in network s.
func keep(s *Network, log *os.File) (k *keeper, isolated bool, err error) {
	if s == nil {
		for _, flags := range []uintptr{unix.CLONE_NEWPID, unix.CLONE_NEWPID | unix.CLONE_NEWUSER, 0} {
			if k, err = startKeeper(log, flags); !refused(err) {
				return k, flags != 0, err
			}
		}
		return nil, false, err
	}
	conn, there, err := channel()
	if err != nil {
		return nil, false, err
	}
	_, err = s.ask(message{Do: "spawn", files: []*os.File{there, log}})
	_ = there.Close()
	if err != nil {
		return nil, false, errors.Join(err, conn.Close())
	}
	k, err = greet(conn)
	return k, true, err
}

func (p *Program) wait() {
	m, err := receive(p.keeper.conn)
	switch {
	case err == nil:
		p.err = errors.New(m.Error)
	case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, unix.ECONNRESET):
		p.err = errors.New("signal: killed")
	default:
		p.err = err
	}
	close(p.done)
}

// Attach returns a running program: the process pid, as this process sees it, and its descendants. Stop does not end it.
func Attach(pid int) (*Program, error) {
	pidfd, err := openPidfd(pid)
	if err != nil {
		return nil, fmt.Errorf("it cannot be attached to: %w", err)
	}
	p := &Program{pidfd: pidfd, done: make(chan struct{}), tree: newTree(pid, false)}
	if err := p.Refresh(); err != nil {
		return nil, errors.Join(err, p.pidfd.Close())
	}
	go func() {
		if waitFor(p.pidfd) == nil { // otherwise, Stop has closed pidfd
			p.err = errors.New("process " + strconv.Itoa(pid) + " has ended")
			close(p.done)
		}
	}()
	return p, nil
}

// PIDs returns the ids of the program's processes, as the processes see them (NSpid in proc_pid_status(5)).
func (p *Program) PIDs() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid := range p.tree.procs {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // empty if the process has ended
		if _, after, found := strings.Cut(string(status), "\nNSpid:"); found {
			ids, _, _ := strings.Cut(after, "\n")
			all = append(all, ids[strings.LastIndexByte(ids, '\t')+1:])
		}
	}
	return all
}

// Configuration finds the program's processes with the given name, such as pgbouncer. It returns the contents of the
// files that are named on their command lines; "" if there are none.
func (p *Program) Configuration(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all strings.Builder
	for pid := range p.tree.procs {
		proc := fmt.Sprintf("/proc/%d", pid)
		line, _ := os.ReadFile(proc + "/cmdline") // empty if the process has ended
		args := strings.Split(string(line), "\x00")
		if filepath.Base(args[0]) != name {
			continue
		}
		for _, arg := range args[1:] {
			file := filepath.Join(proc, "cwd", arg)
			if filepath.IsAbs(arg) {
				file = filepath.Join(proc, "root", arg)
			}
			if about, err := os.Stat(file); err == nil && about.Mode().IsRegular() {
				text, _ := os.ReadFile(file) // empty if the file cannot be read
				all.Write(text)
			}
		}
	}
	return all.String()
}

// Done is closed when the first process has ended. Other processes may still run.
func (p *Program) Done() <-chan struct{} { return p.done }

// Err returns how the first process ended: "exit status 1", "signal: killed". It is nil before Done is closed.
func (p *Program) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop kills the program and all its descendants (SIGKILL). It returns when all of them have ended and
// the log is complete. It may be called again.
func (p *Program) Stop() {
	p.stop.Do(func() {
		if p.keeper != nil {
			p.keeper.end(p.isolated)
			<-p.done
			_ = p.log.close()
		} else {
			_ = p.pidfd.Close()
		}
		p.mu.Lock()
		p.tree.close()
		p.mu.Unlock()
	})
}

// An output copies the output of a program to its log.
type output struct {
	read *os.File
	copy chan struct{} // closed when everything is copied
}

// newOutput opens a pipe. The program writes to forProgram.
func newOutput(to io.Writer) (o *output, forProgram *os.File, err error) {
	if to == nil {
		to = io.Discard
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	// A program that finds the pipe full sleeps, but wakes by itself; a larger pipe makes this rare.
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, 1<<20)
	_ = unix.SetNonblock(fds[0], true) // programs expect the other end to block
	read, write := os.NewFile(uintptr(fds[0]), "log"), os.NewFile(uintptr(fds[1]), "log")
	o = &output{read, make(chan struct{})}
	go func() {
		defer close(o.copy)
		if _, err := io.Copy(to, read); err != nil {
			_, _ = io.Copy(io.Discard, read) // the program continues without its log
		}
	}()
	return o, write, nil
}

func (o *output) unread() bool {
	n := 0
	err := control(o.read, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
		return err
	})
	return err == nil && n > 0
}

// close waits for the rest of the output. All writers must have ended.
func (o *output) close() error {
	select {
	case <-o.copy:
	case <-time.After(time.Second): // a blocked writer of the log must not block Stop
	}
	return o.read.Close()
}
