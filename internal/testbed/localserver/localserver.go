// Package localserver starts real servers as child processes, for one command
// or one test run: SQL databases, Redis, ZooKeeper and etcd.
//
// Each server runs on a free loopback port with its data in one temporary folder, and ends with the Group that
// started it. Even after a SIGKILL of this process, no server and no folder remains, except the templates of
// databases in the cache folder. For this, a Group has a janitor: a shell that reads the children's process
// groups from a pipe. When the pipe breaks, the janitor kills the children and removes the folder.
//
//	shop ----- pipe: "ended 42" --------> janitor (sh)
//	 |  \     pipe: "started 42" ----->    | pipe broken: kill -9, rm -rf
//	 |   mariadbd    |                     v
//	 redis-server x 6                   the same children, the same folder
//
// The package is not for servers that keep data: every Close deletes the data.
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

// ErrMissing reports that a server's program is not installed. The text of the error says how to install it.
var ErrMissing = errors.New("program not found")

// Listening begins the line on stdout in which a shop reports its address.
const Listening = "listening on "

// A Group is a set of children with one temporary folder. It is safe for concurrent use.
type Group struct {
	dir     string
	janitor *exec.Cmd
	pipe    *os.File // pipe to the janitor

	mu            sync.Mutex
	children      []*Process
	reservedPorts []net.PacketConn // sockets that reserve the group's ports; see freePort
}

// janitorScript reads until end of file which process groups have started and ended. Then it kills the groups
// that have not ended. It spares the others, since their ids may belong to other processes by now. $0 is the
// folder. A dying server may still write to the folder, so the script tries to remove it for 10 s.
// PostgreSQL's file postmaster.pid names shared memory, which the script removes.
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

// registerScript registers a child with the janitor, and then becomes the child's program. If this process
// registered the child instead, a SIGKILL between fork and write would leave a child unknown to the janitor.
const registerScript = `echo "started $$" >&3 && exec "$@" 3>&-`

// NewGroup creates the folder and starts the janitor. The caller must call Close.
func NewGroup() (*Group, error) {
	// The janitor starts first, so that the folder never exists without it. os.MkdirTemp would create the
	// folder too early, so the name is made here.
	dir := filepath.Join(os.TempDir(), "oversell-"+rand.Text()[:10]) // short: a socket's path has 103 bytes on macOS
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to the janitor: %w", err)
	}
	janitor := exec.Command("/bin/sh", "-c", janitorScript, dir)
	ownProcessGroup(janitor)
	janitor.Stdin = reader
	err = janitor.Start()
	_ = reader.Close() // the janitor has its own copy
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the janitor: %w", err), writer.Close())
	}
	g := &Group{dir: dir, janitor: janitor, pipe: writer}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("temporary folder: %w", err), g.killJanitor())
	}
	return g, nil
}

// killJanitor ends the janitor before it can see the end of the pipe and remove the folder.
func (g *Group) killJanitor() error {
	err := g.janitor.Process.Kill()
	_ = g.janitor.Wait() // returns "signal: killed"
	return errors.Join(err, g.pipe.Close())
}

// Dir creates a folder of the group for a server's data.
func (g *Group) Dir(name string) (string, error) {
	return os.MkdirTemp(g.dir, name+"-")
}

// Start starts cmd as a child in its own process group. Ctrl-C in the terminal then reaches only this
// process, which ends its children. cmd must have no ExtraFiles.
func (g *Group) Start(cmd *exec.Cmd) (*Process, error) {
	name := filepath.Base(cmd.Path)
	if cmd.Err != nil { // the program was not found
		return nil, fmt.Errorf("start %s: %w", name, cmd.Err)
	}
	cmd.Args = append([]string{"sh", "-c", registerScript, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.ExtraFiles = []*os.File{g.pipe} // descriptor 3 in the child
	ownProcessGroup(cmd)
	// Children of a killed child may keep the output pipe open. Do not wait for them.
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

// Close kills the running children in reverse order of their start, and removes the folder.
func (g *Group) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for i := len(g.children) - 1; i >= 0; i-- {
		errs = append(errs, g.children[i].Kill())
	}
	for _, reserved := range g.reservedPorts {
		errs = append(errs, reserved.Close())
	}
	g.reservedPorts = nil
	dataFolders, _ := filepath.Glob(filepath.Join(g.dir, "*")) // the pattern is valid
	removeSharedMemory(dataFolders...)
	// The janitor ends last, so that a SIGKILL before this line does not leave the folder.
	errs = append(errs, os.RemoveAll(g.dir))
	return errors.Join(append(errs, g.killJanitor())...)
}

// A Process is one child.
type Process struct {
	name string // name of the program
	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid when done is closed

	childrenOwnSessions bool // each of its children has its own session
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends sig. It returns nil if the process has already ended.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Kill ends the process and its children with SIGKILL, and waits until all of them have ended.
func (p *Process) Kill() error {
	select {
	case <-p.done: // its id may belong to another process by now
		return nil
	default:
	}
	var sessionPIDs []int
	if p.childrenOwnSessions {
		sessionPIDs = killSessions(p.cmd.Process)
	}
	if killGroup(p.cmd.Process) != nil { // the group has just ended
		if err := p.Signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	<-p.done
	for tries := 0; slices.ContainsFunc(sessionPIDs, func(pid int) bool { return !ended(pid) }) && tries < 10_000; tries++ {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Stop ends the process with SIGTERM. If it does not end within the timeout, Stop kills it and returns
// an error. Otherwise it returns nil for exit code 0.
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

// Freeze stops the process with SIGSTOP, which it cannot ignore, and returns when every thread has stopped.
// If the children have sessions of their own (PostgreSQL), it stops them too. Freeze returns nil if the process
// has already ended, and an error if the process does not stop within 10 s.
func (p *Process) Freeze() error {
	if err := p.Signal(sigStop); err != nil {
		return err
	}
	if err := awaitStop(p.cmd.Process.Pid); err != nil || !p.childrenOwnSessions {
		return err
	}
	return signalChildren(p.cmd.Process, sigStop)
}

// Thaw lets a frozen process continue.
func (p *Process) Thaw() error {
	if p.childrenOwnSessions {
		if err := signalChildren(p.cmd.Process, sigCont); err != nil {
			return err
		}
	}
	return p.Signal(sigCont)
}

// findProgram returns the path of the first of names that is in PATH, or in a folder where Debian or
// Homebrew keeps servers. If there is none, it returns ErrMissing with the install command.
func findProgram(install string, names ...string) (string, error) {
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

// Program returns the path of the program that StartMySQL, StartPostgres or StartRedis would start. `kind` is
// "mysql", "postgres" or "redis". Program returns ErrMissing if none is installed.
func Program(kind string) (string, error) {
	switch kind {
	case "mysql":
		return findProgram(getMySQL, "mariadbd", "mysqld")
	case "postgres":
		bin, err := postgresBin()
		return filepath.Join(bin, "postgres"), err
	}
	return findProgram(getRedis, "redis-server", "valkey-server")
}
