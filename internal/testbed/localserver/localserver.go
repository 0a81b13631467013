// Package localserver starts real servers as child processes, for one command
// or one test run: SQL databases, Redis, ZooKeeper and etcd.
//
// Each runs on a free loopback port with its data in one temporary folder, and
// ends with the Group that started it. Nothing is left behind either when this
// process is killed by SIGKILL, at any moment: a Group has a janitor, a shell
// that reads the children's process groups from a pipe and, when the pipe
// breaks, kills them and removes the folder.
//
//	shop ----- pipe: "ended 42" --------> janitor (sh)
//	 |  \     pipe: "started 42" ----->    | pipe broken: kill -9, rm -rf
//	 |   mariadbd    |                     v
//	 redis-server x 6                   the same children, the same folder
//
// It is not for servers that keep data: every Close throws the data away.
package localserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrMissing: a server's program is not installed. The error's text says how
// to get it.
var ErrMissing = errors.New("program not found")

// Listening begins the one line on stdout by which a shop says where it serves.
const Listening = "listening on "

// A Group is a set of children with one temporary folder. Its methods may be
// called by several goroutines.
type Group struct {
	dir     string
	janitor *exec.Cmd
	pipe    *os.File // to the janitor

	mu       sync.Mutex
	children []*Process
	ports    []net.PacketConn // see freePort
}

// janitorScript reads until end of file which process groups have started and
// which have ended: an ended one's number may be somebody else's by now. $0 is
// the folder; a server that is just dying may still write to it, so removing
// it is tried for 10 s. The file postmaster.pid is PostgreSQL's, see
// removeSharedMemory.
const janitorScript = `
groups=' '
while read -r event group; do
	case $event$groups in
	started*) groups="$groups$group " ;;
	*" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;;
	esac
done
for group in $groups; do kill -9 "-$group" 2>/dev/null; done
for file in "$0"/*/data/postmaster.pid; do
	[ -e "$file" ] && ipcrm -m "$(sed -n '7s/.* //p' "$file")" 2>/dev/null
done
tries=0
while [ -e "$0" ] && [ $tries -lt 100 ]; do
	rm -rf "$0" 2>/dev/null || sleep 0.1
	tries=$((tries + 1))
done`

// childScript: a child registers by itself before it becomes its program, and
// holds the pipe until it has. If this process were to do it, a SIGKILL between
// fork and write would leave a child that the janitor does not know.
const childScript = `echo "started $$" >&3 && exec "$@" 3>&-`

// NewGroup makes the folder and starts the janitor. Close must follow.
func NewGroup() (*Group, error) {
	// The janitor comes first, so that the folder is never there without it.
	// Hence the name is not one that os.MkdirTemp has found to be free.
	dir := filepath.Join(os.TempDir(), "oversell-"+rand.Text()[:10]) // short: a socket's path has 103 bytes on macOS
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to the janitor: %w", err)
	}
	janitor := exec.Command("/bin/sh", "-c", janitorScript, dir)
	ownProcessGroup(janitor)
	janitor.Stdin = out
	err = janitor.Start()
	_ = out.Close() // the janitor has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the janitor: %w", err), in.Close())
	}
	g := &Group{dir: dir, janitor: janitor, pipe: in}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("temporary folder: %w", err), g.dismiss())
	}
	return g, nil
}

// dismiss ends the janitor before it sees the end of the pipe.
func (g *Group) dismiss() error {
	err := g.janitor.Process.Kill()
	_ = g.janitor.Wait() // "signal: killed", as asked
	return errors.Join(err, g.pipe.Close())
}

// Dir returns a new folder of the group's own for a server's data.
func (g *Group) Dir(name string) (string, error) {
	return os.MkdirTemp(g.dir, name+"-")
}

// Start starts cmd as a child in a process group of its own, so that Ctrl-C
// in the terminal reaches this process only, which then ends its children.
// cmd must have no ExtraFiles.
func (g *Group) Start(cmd *exec.Cmd) (*Process, error) {
	name := filepath.Base(cmd.Path)
	if cmd.Err != nil { // the program was not found
		return nil, fmt.Errorf("start %s: %w", name, cmd.Err)
	}
	cmd.Args = append([]string{"sh", "-c", childScript, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.ExtraFiles = []*os.File{g.pipe} // 3 in the child
	ownProcessGroup(cmd)
	// Children of a killed child may keep the output pipe open; do not wait for them.
	cmd.WaitDelay = time.Second
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		_, _ = fmt.Fprintln(g.pipe, "ended", cmd.Process.Pid) // fails once the group is closed
		close(p.done)
	}()
	g.children = append(g.children, p)
	return p, nil
}

// Close kills what still runs, the last started first, and removes the folder.
func (g *Group) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for i := len(g.children) - 1; i >= 0; i-- {
		errs = append(errs, g.children[i].Kill())
	}
	for _, reserved := range g.ports {
		errs = append(errs, reserved.Close())
	}
	g.ports = nil
	servers, _ := filepath.Glob(filepath.Join(g.dir, "*")) // the pattern is well-formed
	removeSharedMemory(servers...)
	// The janitor goes last: a SIGKILL in between must not leave the folder.
	errs = append(errs, os.RemoveAll(g.dir))
	return errors.Join(append(errs, g.dismiss())...)
}

// A Process is one child.
type Process struct {
	name string // of the program
	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid once done is closed

	sessions bool // its own children have sessions of their own
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends sig. nil when the process has ended already.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Kill ends the process and its own children with SIGKILL and waits until it
// is gone.
func (p *Process) Kill() error {
	select {
	case <-p.done: // its number may be somebody else's by now
		return nil
	default:
	}
	var apart []int
	if p.sessions {
		apart = killSessions(p.cmd.Process)
	}
	if killGroup(p.cmd.Process) != nil { // it has just ended
		if err := p.Signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	<-p.done
	for tries := 0; slices.ContainsFunc(apart, func(pid int) bool { return !ended(pid) }) && tries < 10_000; tries++ {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Stop asks the process to end with SIGTERM, and kills it when it has not ended within
// the timeout. It returns how it ended: nil for exit code 0.
func (p *Process) Stop(timeout time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(timeout):
		return errors.Join(fmt.Errorf("%s did not end within %s", p.name, timeout), p.Kill())
	}
}

// Freeze stops the process by SIGSTOP, which it cannot ignore, and returns when every
// thread has stopped. Its own children run on. Freeze fails when the process has ended
// or has not stopped within 10 s.
func (p *Process) Freeze() error {
	if err := p.Signal(sigStop); err != nil {
		return err
	}
	return awaitStop(p.cmd.Process.Pid)
}

// Thaw lets a frozen process run on.
func (p *Process) Thaw() error { return p.Signal(sigCont) }

// program finds the first of names in PATH or the folders where Debian keeps
// servers. ErrMissing, with how to get it, when there is none.
func program(install string, names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin", "/usr/local/bin"} {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w; get it with: %s", strings.Join(names, " or "), ErrMissing, install)
}
