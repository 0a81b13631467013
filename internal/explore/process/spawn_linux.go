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

// patience is how long a keeper may take to answer; it is no part of any measurement.
const patience = 30 * time.Second

// errKeep is a binary that does not know how to keep.
var errKeep = errors.New("this binary cannot keep programs: its main (of a test: TestMain) must call process.Keep first")

// A keeper is one as the explorer sees it.
type keeper struct {
	conn  *net.UnixConn
	pid   int
	pidfd *os.File // ready once the keeper and whatever was in its PID namespace are gone
}

// command is a keeper that speaks over control, its third file. flags are of clone(2).
func command(control, log *os.File, flags uintptr) *exec.Cmd {
	// The program's package need not be readable by the user who runs it.
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{keeperName, "-test.run=^$"} // a test that does not call Keep ends at once
	cmd.Env = []string{"GOMAXPROCS=2"}
	cmd.ExtraFiles = []*os.File{control}
	if log != nil {
		cmd.Stderr = log
	}
	// No terminal sends it its Ctrl-C: the explorer ends it in good order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: flags}
	if flags&unix.CLONE_NEWPID != 0 {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	if flags&unix.CLONE_NEWUSER != 0 {
		uid, gid := os.Geteuid(), os.Getegid()
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN} // in there
	}
	return cmd
}

// startKeeper starts one as a child of this process.
func startKeeper(log *os.File, flags uintptr) (*keeper, error) {
	conn, there, err := channel()
	if err != nil {
		return nil, err
	}
	cmd := command(there, log, flags)
	started := make(chan error)
	go func() {
		// The signal of a parent's death is that of the death of the thread that forked
		// (PR_SET_PDEATHSIG(2const)), so this one lives as long as the child.
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

// greet waits for a keeper that was started.
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

// openPidfd is a process as a file, which is ready to be read once it has ended.
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

// ask sends m and waits for the answer.
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

// end kills the keeper and waits until nothing of what it kept is left.
func (k *keeper) end(isolated bool) {
	if isolated {
		_ = control(k.pidfd, func(fd int) error { return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) })
	} else {
		_ = k.conn.CloseWrite() // it kills them one by one
	}
	_ = waitFor(k.pidfd)
	_ = k.conn.Close()
	_ = k.pidfd.Close()
}

// waitFor returns when the process has ended. It fails when pidfd is closed before.
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

// refused reports whether err says that the kernel does not allow namespaces.
func refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS)
}

// remedy says what makes namespaces allowed here.
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
