package process

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A listener is a line of /proc/net/tcp (proc_pid_net(5)).
type listener struct {
	at      netip.AddrPort
	backlog int    // connections that nobody has accepted yet
	inode   string // of the socket
}

// Listeners is who listens in the network, the gates too: "127.0.0.1:8080", "[::]:80",
// sorted.
func (s *Space) Listeners() ([]string, error) {
	all, err := s.listeners()
	if err != nil {
		return nil, err
	}
	var at []string
	for _, l := range all {
		at = append(at, l.at.String())
	}
	slices.Sort(at)
	return slices.Compact(at), nil
}

// Backlog is how many connections in the network wait to be accepted, but for those that
// wait for this process.
func (s *Space) Backlog() (int, error) {
	all, err := s.listeners()
	if err != nil {
		return 0, err
	}
	var own map[string]bool
	sum := 0
	for _, l := range all {
		if l.backlog == 0 {
			continue
		}
		if own == nil {
			own = sockets()
		}
		if !own[l.inode] {
			sum += l.backlog
		}
	}
	return sum, nil
}

func (s *Space) listeners() (all []listener, err error) {
	of := "self"
	if s != nil {
		if all, err = s.diagnosed(); !errors.Is(err, errNoDiag) {
			return all, err
		}
		of = strconv.Itoa(s.keeper.pid)
	}
	all = nil
	for _, name := range []string{"tcp", "tcp6"} {
		found, err := readListeners("/proc/" + of + "/net/" + name)
		if errors.Is(err, fs.ErrNotExist) && name == "tcp6" {
			continue // no IPv6 here
		}
		if err != nil {
			return nil, fmt.Errorf("who listens in the program's network: %w", err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// diagnosed asks by the socket that is kept for it.
func (s *Space) diagnosed() (all []listener, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.diag == nil {
		return nil, errNoDiag
	}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		found, err := diagnose(int(s.diag.Fd()), family)
		if err != nil { // what is left of an answer must not be taken for the next one
			_ = s.diag.Close()
			s.diag = nil
			return nil, fmt.Errorf("%w: %w", errNoDiag, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// readListeners takes milliseconds, since the kernel walks its table of all connections.
func readListeners(path string) ([]listener, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []listener
	for line := range bytes.Lines(b) {
		// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
		f := strings.Fields(string(line))
		if len(f) < 10 || f[3] != "0A" {
			continue
		}
		l := listener{inode: f[9]}
		if l.at, err = hexAddress(f[1]); err != nil {
			return nil, err
		}
		_, queue, _ := strings.Cut(f[4], ":")
		backlog, err := strconv.ParseUint(queue, 16, 32)
		if err != nil {
			return nil, err
		}
		l.backlog = int(backlog)
		all = append(all, l)
	}
	return all, nil
}

// hexAddress reads "0100007F:1F90": words of four bytes as the machine has them, and a port.
func hexAddress(s string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for i := 0; i+4 <= len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	p, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q", s)
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(p)), nil
}

// sockets are this process's, by inode.
func sockets() map[string]bool {
	all := map[string]bool{}
	names, _ := os.ReadDir("/proc/self/fd")
	for _, name := range names {
		to, err := os.Readlink("/proc/self/fd/" + name.Name())
		if inode, ok := strings.CutPrefix(to, "socket:["); err == nil && ok {
			all[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return all
}
