package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Network is a network namespace (network_namespaces(7)) with a loopback interface. There, gates (proxies) can
// listen at the addresses of a program's servers. A nil Network is the host's network. Several goroutines may use
// it.
type Network struct {
	mu     sync.Mutex // one request at a time
	keeper *keeper
	diag   *os.File            // for queries about listeners; nil if the kernel does not support them
	spare  map[bool][]*os.File // unused sockets; key true: IPv6
	close  sync.Once
}

// NewNetwork makes a Network. It needs root or user namespaces. If neither is allowed, the error is one line with
// advice.
func NewNetwork() (*Network, error) {
	flags := uintptr(unix.CLONE_NEWNET | unix.CLONE_NEWPID)
	s, err := newNetwork(flags)
	if refused(err) {
		s, err = newNetwork(flags | unix.CLONE_NEWUSER)
	}
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, errKeep):
		return nil, err
	}
	return nil, fmt.Errorf("a program needs a network of its own (%w): %s", err, remedy())
}

func newNetwork(flags uintptr) (*Network, error) {
	k, err := startKeeper(nil, flags)
	if err != nil {
		return nil, err
	}
	if _, err := k.ask(message{Do: "network"}); err != nil {
		k.end(true)
		return nil, err
	}
	s := &Network{keeper: k, spare: map[bool][]*os.File{}}
	if answer, err := k.ask(message{Do: "diag"}); err == nil && len(answer.files) == 1 {
		s.diag = answer.files[0]
	}
	return s, nil
}

func (s *Network) ask(m message) (message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keeper.ask(m)
}

// Close ends the network and every program in it. Connections and listeners in the network stay open until their
// owners close them.
func (s *Network) Close() error {
	if s != nil {
		s.close.Do(func() {
			s.keeper.end(true)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.diag != nil {
				_ = s.diag.Close()
				s.diag = nil
			}
			for _, all := range s.spare {
				closeAll(all)
			}
			s.spare = nil
		})
	}
	return nil
}

// Listen accepts the connections that the network's processes make to an address such as "127.0.0.1:3306". Port 0
// means any free port. For a name with several addresses, it uses the first, IPv4 before IPv6.
func (s *Network) Listen(address string) (*net.TCPListener, error) {
	if s == nil {
		var plain net.ListenConfig
		plain.SetMultipathTCP(false) // for multipath TCP, the kernel reports less about a connection
		l, err := plain.Listen(context.Background(), "tcp", address)
		if err != nil {
			return nil, err
		}
		return l.(*net.TCPListener), nil
	}
	all, err := resolve(context.Background(), address)
	if err != nil {
		return nil, err
	}
	l, err := s.listen(all[0])
	if errors.Is(err, unix.EADDRNOTAVAIL) { // the address belongs to another machine
		if _, err = s.ask(message{Do: "address", Line: all[0].Addr().String()}); err == nil {
			l, err = s.listen(all[0])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	return l, nil
}

func (s *Network) listen(at netip.AddrPort) (*net.TCPListener, error) {
	f, err := s.socket(at.Addr().Is6())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = control(f, func(fd int) error {
		// Allow a port that still has closing connections from an earlier run (socket(7)).
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return err
		}
		if err := unix.Bind(fd, sockaddr(at)); err != nil {
			return err
		}
		return unix.Listen(fd, 4096)
	})
	if err != nil {
		return nil, err
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// Dial connects to an address within the network. If a name has several addresses, it tries them one by one.
func (s *Network) Dial(ctx context.Context, address string) (*net.TCPConn, error) {
	if s == nil {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return c.(*net.TCPConn), nil
	}
	all, err := resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	for _, to := range all {
		c, dialErr := s.dial(ctx, to)
		if dialErr == nil {
			return c, nil
		}
		err = cmp.Or(err, dialErr)
	}
	return nil, fmt.Errorf("connect to %s: %w", address, err)
}

// Dialer opens a socket for a connection to address, and returns a function that connects it. So a caller
// can prepare many connections and then connect them all at once. Call the function at most once.
func (s *Network) Dialer(ctx context.Context, address string) (func(context.Context) (*net.TCPConn, error), error) {
	dial := func(ctx context.Context) (*net.TCPConn, error) { return s.Dial(ctx, address) }
	if s == nil {
		return dial, nil
	}
	all, err := resolve(ctx, address)
	if err != nil || len(all) != 1 {
		return dial, err
	}
	f, err := s.socket(all[0].Addr().Is6())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*net.TCPConn, error) {
		c, err := connect(ctx, f, all[0])
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", address, err)
		}
		return c, nil
	}, nil
}

func (s *Network) dial(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	f, err := s.socket(to.Addr().Is6())
	if err != nil {
		return nil, err
	}
	return connect(ctx, f, to)
}

func connect(ctx context.Context, f *os.File, to netip.AddrPort) (*net.TCPConn, error) {
	defer f.Close()
	stop := context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	err := control(f, func(fd int) error { return unix.Connect(fd, sockaddr(to)) })
	if errors.Is(err, unix.EINPROGRESS) {
		err = connected(f)
	}
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return nil, err
	}
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// connected waits until a pending connection is established or has failed (connect(2)).
func connected(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = raw.Write(func(fd uintptr) bool {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, _ := unix.Poll(ready, 0); n == 0 {
			return false
		}
		number, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if result = err; number != 0 {
			result = unix.Errno(number)
		}
		return true
	})
	return cmp.Or(err, result)
}

// socketsAtOnce is how many sockets one request to the keeper returns; one message can carry that many. A
// buyer needs a new socket in each run.
const socketsAtOnce = 16

func (s *Network) socket(ipv6 bool) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spare[ipv6]) == 0 {
		answer, err := s.keeper.ask(message{Do: "socket", IPv6: ipv6, Count: socketsAtOnce})
		switch {
		case err != nil:
			return nil, err
		case len(answer.files) == 0 || s.spare == nil: // s is closed
			closeAll(answer.files)
			return nil, errors.New("the keeper has sent no socket")
		}
		s.spare[ipv6] = answer.files
	}
	f := s.spare[ipv6][0]
	s.spare[ipv6] = s.spare[ipv6][1:]
	return f, nil
}

// resolve looks up, on the host, the name in `address`. An empty host means all addresses.
func resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("address %s: port %q is no number from 0 to 65535", address, service)
	}
	var all []netip.AddrPort
	if host == "" {
		return append(all, netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port))), nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		all = append(all, netip.AddrPortFrom(a.Unmap(), uint16(port)))
	}
	slices.SortStableFunc(all, func(a, b netip.AddrPort) int { return cmp.Compare(a.Addr().BitLen(), b.Addr().BitLen()) })
	return all, nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
}
