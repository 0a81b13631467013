package wire

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A Listener accepts the connections of a program. It counts a connection in Gate.Busy before taking it
// from the kernel's queue, so the gate always sees the connection, in the queue or in Busy.
type Listener struct {
	listener *net.TCPListener
	file     *os.File // a second descriptor of the listener; Go's poller watches it
}

// Listen serves protocol p on l for a buyer's program. Closing the result closes l. The parameter `server` is the
// address of the real server. Unless `done` is nil, Listen calls it with the error of each ended connection.
func Listen(gate Gate, p Protocol, buyer int, l *net.TCPListener, server string, done func(error)) (*Listener, error) {
	file, err := pollable(l)
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := accept(gate, raw)
			if err != nil {
				return // the listener is closed
			}
			go func() {
				if err := connect(gate, p, buyer, c, server); done != nil {
					done(err)
				}
			}()
		}
	}()
	return &Listener{l, file}, nil
}

// pollable returns a second descriptor of l, which Go's poller watches. A TCPListener does not let its
// caller wait for a connection without accepting it.
func pollable(l *net.TCPListener) (*os.File, error) {
	blocking, err := l.File()
	if err != nil {
		return nil, err
	}
	defer blocking.Close()
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "listener"), nil
}

// accept returns the next connection, after raising Busy for it.
func accept(gate Gate, raw rawConn) (*net.TCPConn, error) {
	var fd int
	var err error
	wrong := raw.Read(func(listener uintptr) bool {
		gate.Busy(1)
		fd, _, err = unix.Accept4(int(listener), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
			gate.Busy(-1)
			return false
		}
		return true
	})
	if wrong != nil {
		return nil, wrong
	}
	if err != nil {
		gate.Busy(-1)
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "connection")
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		gate.Busy(-1)
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// connect serves a connection. At first, Gate.Busy counts the connection. Then connect makes it count the
// program's socket.
func connect(gate Gate, p Protocol, buyer int, c *net.TCPConn, server string) error {
	_ = c.SetNoDelay(true)
	program, err := NewSocket(gate, c)
	if err == nil {
		program.Warm()
	}
	gate.Busy(-1)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	up, err := net.Dial("tcp", server)
	if err != nil {
		_ = program.Close()
		program.Done()
		return fmt.Errorf("the %s server at %s: %w", p.Name, server, err)
	}
	theirs, err := NewSocket(gate, up.(*net.TCPConn))
	if err != nil {
		return err
	}
	return Serve(gate, p, buyer, program, theirs)
}

// Addr returns the address for programs.
func (l *Listener) Addr() string { return l.listener.Addr().String() }

// Waiting returns how many connections are not accepted yet (tcpi_unacked of a listener, tcp(7)).
func (l *Listener) Waiting() (n int) {
	raw, err := l.listener.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int(info.Unacked)
		}
	})
	return n
}

// Close accepts no more connections. Open connections continue.
func (l *Listener) Close() error { return errors.Join(l.listener.Close(), l.file.Close()) }
