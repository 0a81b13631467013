package process

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/oversell/oversell/internal/require"
)

// TestSpaces: the same address leads to a different server in each network and on the host.
func TestSpaces(t *testing.T) {
	spaces := []*Network{newTestNetwork(t), newTestNetwork(t)}
	for i, s := range spaces {
		l, err := s.Listen("127.0.0.1:80") // a privileged port
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte{byte('a' + i)})
				_ = c.Close()
			}
		}()
		if at, err := listening(s); err != nil || !slices.Equal(at, []string{"127.0.0.1:80"}) {
			t.Errorf("listeners of %d: %v, %v", i, at, err)
		}
	}
	for i, s := range spaces {
		b, err := io.ReadAll(dial(t, s, "localhost:80"))
		if want := string(rune('a' + i)); err != nil || string(b) != want {
			t.Errorf("got %q, %v, want %q", b, err, want)
		}
		_, log := begin(t, s, python(t, `
import socket
print("got", socket.create_connection(("127.0.0.1", 80)).recv(1))`))
		require.Eventually(t, "the program has connected", log.has("got b'"+string(rune('a'+i))+"'"))
	}
	if _, err := spaces[0].Listen("127.0.0.1:80"); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a taken port: %v", err)
	}
	if _, err := spaces[0].Dial(t.Context(), "127.0.0.1:81"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := spaces[0].Dial(over, "127.0.0.1:80"); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is over: %v", err)
	}
	for _, bad := range []string{"", "80", "127.0.0.1:http", "127.0.0.1:70000"} {
		if _, err := spaces[0].Listen(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

// TestDialWaits: Dial waits until the connection is established or its context ends.
func TestDialWaits(t *testing.T) {
	s := newTestNetwork(t)
	l, err := s.Listen("127.0.0.1:1000")
	require.NoError(t, err)
	defer l.Close()
	if err := control2(l, func(fd int) error { return unix.Listen(fd, 0) }); err != nil { // a backlog of one
		t.Fatal(err)
	}
	dial(t, s, "127.0.0.1:1000")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Dial(ctx, "127.0.0.1:1000"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a listener without room: %v", err)
	}
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	dial(t, s, "127.0.0.1:1000")
}

func control2(l *net.TCPListener, do func(fd int) error) (err error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	if wrong := raw.Control(func(fd uintptr) { err = do(int(fd)) }); wrong != nil {
		return wrong
	}
	return err
}

// TestForeignAddresses: a network can contain the address of a server on another machine.
func TestForeignAddresses(t *testing.T) {
	s := newTestNetwork(t)
	for _, address := range []string{"192.0.2.77:3306", "192.0.2.77:5432", "198.51.100.77:3306", "[2001:db8::7]:3306", "[::1]:8080"} {
		l, err := s.Listen(address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
	}
	for _, address := range []string{"192.0.2.77:3306", "198.51.100.77:3306", "[2001:db8::7]:3306", "[::1]:8080"} {
		c, err := s.Dial(t.Context(), address)
		require.NoError(t, err)
		_ = c.Close()
	}
	if c, err := s.Dial(t.Context(), "192.0.2.78:3306"); err == nil {
		t.Errorf("somebody is at %s", c.RemoteAddr())
	}
	if at, err := listening(s); err != nil || !slices.Contains(at, "[::1]:8080") || !slices.Contains(at, "[2001:db8::7]:3306") {
		t.Errorf("listeners %v, %v", at, err)
	}
	if _, err := net.DialTimeout("tcp", "[::1]:8080", time.Second); err == nil {
		t.Error("the host has [::1]:8080, too")
	}
}

// listening returns the addresses at which a program or a gate listens: "127.0.0.1:8080".
func listening(s *Network) (at []string, err error) {
	all, err := s.listeners()
	for _, l := range all {
		at = append(at, l.at.String())
	}
	slices.Sort(at)
	return slices.Compact(at), err
}

// TestBacklog counts the connections that a program has not accepted.
func TestBacklog(t *testing.T) {
	for name, proc := range map[string]bool{"sock_diag": false, "proc": true} {
		t.Run(name, func(t *testing.T) {
			s := newTestNetwork(t)
			if proc {
				_ = s.diag.Close()
				s.diag = nil
			} else if s.diag == nil {
				t.Skip("this kernel has no sock_diag(7)")
			}
			own, err := s.Listen("127.0.0.1:3306")
			require.NoError(t, err)
			defer own.Close()
			dial(t, s, "127.0.0.1:3306")
			begin(t, s, python(t, `
import socket, signal
s = socket.create_server(("127.0.0.1", 8080), backlog=5)
signal.signal(signal.SIGUSR1, lambda *_: s.accept())
while True: signal.pause()`))
			dial(t, s, "127.0.0.1:8080")
			dial(t, s, "127.0.0.1:8080")
			if n, err := s.BacklogAt("127.0.0.1:8080"); err != nil || n != 2 {
				t.Errorf("backlog %d, %v, want 2", n, err)
			}
			if at, err := listening(s); err != nil || !slices.Equal(at, []string{"127.0.0.1:3306", "127.0.0.1:8080"}) {
				t.Errorf("listeners %v, %v", at, err)
			}
		})
	}
}

// TestUnacknowledged counts bytes that were sent and have not arrived. If a program does not read, its kernel accepts only
// what it can buffer.
func TestUnacknowledged(t *testing.T) {
	for name, s := range map[string]*Network{"space": newTestNetwork(t), "host": nil} {
		t.Run(name, func(t *testing.T) {
			l, err := s.Listen("127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			c := dial(t, s, l.Addr().String())
			other, err := l.AcceptTCP()
			require.NoError(t, err)
			defer other.Close()
			if n, err := s.Unacknowledged(c); err != nil || n != 0 {
				t.Errorf("nothing was sent: %d, %v", n, err)
			}
			begun := time.Now()
			for range 20 { // without TCP_QUICKACK, most take 40 ms
				if _, err := other.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				require.Eventually(t, "it has come", func() bool {
					n, err := s.Unacknowledged(c)
					return err == nil && n == 0
				})
			}
			t.Logf("20 came in %v", time.Since(begun))
			if _, err := c.Write([]byte("four")); err != nil {
				t.Fatal(err)
			}
			require.Eventually(t, "four bytes are received", func() bool {
				n, err := s.Received(c)
				return err == nil && n == 4
			})
			if _, err := io.ReadFull(other, make([]byte, 4)); err != nil {
				t.Fatal(err)
			}
			sent := 0
			require.Eventually(t, "more was sent than there is room for", func() bool { // a slow machine may accept nothing for a while
				_ = other.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
				taken, err := other.Write(make([]byte, 1<<20))
				if sent += taken; !errors.Is(err, os.ErrDeadlineExceeded) && (err != nil || sent > 64<<20) {
					t.Fatalf("the kernel has taken everything: %v", err)
				}
				if taken > 0 {
					return false
				}
				n, err := s.Unacknowledged(c)
				return err == nil && n > 0
			})
			if n, err := s.Unacknowledged(other); err != nil || n != 0 {
				t.Errorf("the other way: %d, %v", n, err)
			}
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
			go func() { _, _ = io.Copy(io.Discard, c) }()
			require.Eventually(t, "all has come", func() bool {
				n, err := s.Unacknowledged(c)
				return err == nil && n == 0
			})
			_ = other.Close()
			require.Eventually(t, "the end has come", func() bool {
				n, err := s.Unacknowledged(c)
				return err == nil && n == 0
			})
		})
	}
}

// TestHost: every method works on nil, the host's network.
func TestHost(t *testing.T) {
	var s *Network
	l, err := s.Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dial(t, s, l.Addr().String())
	at, err := listening(s)
	if err != nil || !slices.Contains(at, l.Addr().String()) {
		t.Errorf("listeners %v, %v, without %v", at, err, l.Addr())
	}
	if _, err := s.BacklogAt(l.Addr().String()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	_, log := begin(t, s, "readlink /proc/self/ns/net")
	mine, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	require.Eventually(t, "the program says its network", log.has("net:"))
	if got := strings.TrimSpace(log.String()); got != mine {
		t.Errorf("the program's network is %s, want %s", got, mine)
	}
}

// TestClose: Close ends the processes in the network, and its keepers.
func TestClose(t *testing.T) {
	s, err := NewNetwork()
	require.NoError(t, err)
	p, _ := begin(t, s, "sleep 987001")
	pid := s.keeper.pid
	require.NoError(t, s.Close())
	<-p.Done()
	p.Stop()
	if left := append(running("987001"), keepers(pid)...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := s.Listen("127.0.0.1:80"); err == nil {
		t.Error("a closed network has a listener")
	}
	if _, err := Start(s, Command{Line: "true"}); err == nil {
		t.Error("a closed network has a program")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
