package process

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

type listener struct {
	at      netip.AddrPort
	backlog int    // number of connections that were not accepted yet
	inode   string // inode of the socket
}

// BacklogAt returns the number of connections that wait to be accepted at the port of address, such as
// "127.0.0.1:8080".
func (s *Network) BacklogAt(address string) (int, error) {
	_, service, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	all, err := s.listeners()
	sum := 0
	for _, l := range all {
		if strconv.Itoa(int(l.at.Port())) == service {
			sum += l.backlog
		}
	}
	return sum, err
}

func (s *Network) listeners() (all []listener, err error) {
	if all, err = s.diagnosed(); !errors.Is(err, errNoDiag) {
		return all, err
	}
	of := "self"
	if s != nil {
		of = strconv.Itoa(s.keeper.pid)
	}
	if all, err = procListeners("/proc/" + of); err != nil {
		err = fmt.Errorf("list the listeners in the program's network: %w", err)
	}
	return all, err
}

// procListeners reads the listeners from /proc. This takes milliseconds: the kernel walks a table of all connections.
func procListeners(process string) (all []listener, err error) {
	proc, err := procfs.NewFS(process)
	if err != nil {
		return nil, err
	}
	sockets, err := proc.NetTCP()
	if err != nil {
		return nil, err
	}
	sockets6, err := proc.NetTCP6()
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a system may have no IPv6
		return nil, err
	}
	for _, one := range append(sockets, sockets6...) {
		if host, ok := netip.AddrFromSlice(one.LocalAddr); ok && one.St == tcpListen {
			at := netip.AddrPortFrom(host.Unmap(), uint16(one.LocalPort))
			all = append(all, listener{at, int(one.RxQueue), strconv.FormatUint(one.Inode, 10)})
		}
	}
	return all, nil
}

func (s *Network) diagnosed() (all []listener, err error) {
	err = s.ofKernel(func(fd int) error {
		for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
			found, err := diagnose(fd, family)
			if err != nil {
				return err
			}
			all = append(all, found...)
		}
		return nil
	})
	return all, err
}

// ofKernel calls `ask` with the open socket of s for queries. If s is nil, it opens a socket in the host's network.
func (s *Network) ofKernel(ask func(fd int) error) error {
	if s == nil {
		f, err := diagSocket()
		if err != nil {
			return fmt.Errorf("%w: %w", errNoDiag, err)
		}
		defer f.Close()
		return ask(int(f.Fd()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.diag == nil {
		return errNoDiag
	}
	if err := ask(int(s.diag.Fd())); err != nil { // otherwise the next query could read the rest of this answer
		_ = s.diag.Close()
		s.diag = nil
		return fmt.Errorf("%w: %w", errNoDiag, err)
	}
	return nil
}

// Unacknowledged returns the number of bytes that the program's end of c has sent and this end's kernel has not
// received. A sender may sleep while its bytes are in a queue of its processor. The result may include bytes that have
// arrived and were not read. It counts the end of the connection as one byte. It is 0 if an end of c is closed.
func (s *Network) Unacknowledged(c *net.TCPConn) (n int, err error) {
	from, to, ok := bothEnds(c)
	if !ok {
		return 0, nil
	}
	look := func(fd int) error {
		n, err = diagUnacknowledged(fd, from, to)
		return err
	}
	if err := s.ofKernel(look); err != nil || n == 0 {
		return 0, err
	}
	// This end may already have received the bytes, and wait 40 ms to acknowledge them together with other data.
	// TCP_QUICKACK makes the kernel acknowledge them now (tcp(7)).
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	}
	err = s.ofKernel(look)
	return n, err
}

// Received returns the total number of bytes that the program's end of c has received; 0 if the kernel does not report
// the number. The count may be 40 ms late.
func (s *Network) Received(c *net.TCPConn) (n int64, err error) {
	from, to, ok := bothEnds(c)
	if !ok {
		return 0, nil
	}
	err = s.ofKernel(func(fd int) error {
		n, err = diagReceived(fd, from, to)
		return err
	})
	return n, err
}

// bothEnds returns the addresses of the other end of a connection, and of this end.
func bothEnds(c *net.TCPConn) (other, this netip.AddrPort, ok bool) {
	from, ok := c.RemoteAddr().(*net.TCPAddr)
	to, too := c.LocalAddr().(*net.TCPAddr)
	if !ok || !too {
		return other, this, false
	}
	addr := func(a *net.TCPAddr) netip.AddrPort {
		p := a.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return addr(from), addr(to), true
}
