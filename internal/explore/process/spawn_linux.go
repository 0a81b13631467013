package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is the maximum time for a keeper's answer. Measurements do not depend on it.
const patience = 30 * time.Second

// errKeep reports that a binary does not call Keep.
var errKeep = errors.New("this binary cannot keep programs: its main (of a test: TestMain) must call process.Keep first")

// A keeper is the explorer's connection to a keeper process, which starts and ends a program.
type keeper struct {
	conn  *net.UnixConn
	pid   int
	pidfd *os.File // becomes ready when the keeper and its PID namespace have ended
}

// command builds the command of a keeper, which communicates over the socket `control`. The flags are those of
// clone(2).
func command(control, log *os.File, flags uintptr) *exec.Cmd {
	// This path works even if the program's user cannot read this binary.
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{keeperName, "-test.run=^$"} // a test binary that does not call Keep ends at once
	cmd.Env = []string{"GOMAXPROCS=2"}
	cmd.ExtraFiles = []*os.File{control}
	if log != nil {
		cmd.Stderr = log
	}
	// In its own session, a keeper gets no Ctrl-C from the terminal: the explorer ends it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: flags}
	if flags&unix.CLONE_NEWPID != 0 {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	if flags&unix.CLONE_NEWUSER != 0 {
		uid, gid := os.Geteuid(), os.Getegid()
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN} // within the user namespace
	}
	return cmd
}

func startKeeper(log *os.File, flags uintptr) (*keeper, error) {
	conn, there, err := channel()
	if err != nil {
		return nil, err
	}
	cmd := command(there, log, flags)
	started := make(chan error)
	go func() {
		// The kernel sends the signal of the parent's death when the forking thread ends (PR_SET_PDEATHSIG(2const)), so this
		// thread must live as long as the child.
		runtime.LockOSThread()
		err := cmd.Start()
		_ = there.Close()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return greet(conn)
}

// greet waits until a new keeper is ready.
func greet(conn *net.UnixConn) (*keeper, error) {
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	m, err := receive(conn)
	_ = conn.SetReadDeadline(time.Time{})
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		return nil, errors.Join(errKeep, conn.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("the keeper does not answer: %w", err), conn.Close())
	}
	pidfd, err := openPidfd(m.pid)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &keeper{conn, m.pid, pidfd}, nil
}

// openPidfd opens a process as a file that becomes readable when the process ends.
func openPidfd(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		return nil, fmt.Errorf("pidfd_open(2) as it is since Linux 5.10: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

func (k *keeper) ask(m message) (message, error) {
	if err := send(k.conn, m); err != nil {
		return message{}, fmt.Errorf("the keeper has gone: %w", err)
	}
	_ = k.conn.SetReadDeadline(time.Now().Add(patience))
	defer k.conn.SetReadDeadline(time.Time{})
	answer, err := receive(k.conn)
	if err != nil {
		return message{}, fmt.Errorf("the keeper has gone: %w", err)
	}
	if answer.Error != "" {
		closeAll(answer.files)
		return message{}, errors.New(answer.Error)
	}
	return answer, nil
}

// end kills the keeper and waits until all its processes have ended.
func (k *keeper) end(isolated bool) {
	if isolated {
		_ = control(k.pidfd, func(fd int) error { return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) })
	} else {
		_ = k.conn.CloseWrite() // makes the keeper kill its processes one by one
	}
	_ = waitFor(k.pidfd)
	_ = k.conn.Close()
	_ = k.pidfd.Close()
}

// waitFor waits until the process has ended. It fails if pidfd is closed first.
func waitFor(pidfd *os.File) error {
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}

// refused reports whether err means that namespaces are not allowed.
func refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS)
}

func remedy() string {
	setting := func(path, bad string) bool {
		b, err := os.ReadFile(path)
		return err == nil && strings.TrimSpace(string(b)) == bad
	}
	switch {
	case setting("/proc/sys/kernel/unprivileged_userns_clone", "0"):
		return "run it as root, or allow user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case setting("/proc/sys/user/max_user_namespaces", "0"):
		return "run it as root, or allow user namespaces: sudo sysctl -w user.max_user_namespaces=10000"
	case setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"):
		return "run it as root, or allow user namespaces: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case os.Geteuid() == 0:
		return "root lacks CAP_SYS_ADMIN here: in Docker, add --privileged to docker run"
	}
	return "run it as root, or outside of the container that forbids user namespaces (in Docker: --privileged)"
}
