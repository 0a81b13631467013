package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// SameNetwork reports whether the process pid is in the network namespace of this process.
func SameNetwork(pid int) (bool, error) {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return false, err
	}
	its, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/net")
	if err != nil {
		return false, fmt.Errorf("its network namespace cannot be read (%w): run this as root, or as its user", err)
	}
	return own == its, nil
}

// Serves reports whether the program listens at the port of address, such as "127.0.0.1:8080", in the network of this
// process.
func (p *Program) Serves(address string) (bool, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	all, err := (*Network)(nil).listeners()
	if err != nil {
		return false, err
	}
	listens := map[string]bool{}
	for _, l := range all {
		if strconv.Itoa(int(l.at.Port())) == port {
			listens["socket:["+l.inode+"]"] = true
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.tree.walk(); err != nil {
		return false, err
	}
	if p.tree.procs[os.Getpid()] != nil {
		return false, errors.New("it has started this command itself, which never rests; give the pid of the program alone")
	}
	for pid := range p.tree.procs {
		dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
		names, err := os.ReadDir(dir)
		if err != nil {
			continue // the process has ended
		}
		for _, name := range names {
			if to, err := os.Readlink(dir + name.Name()); err == nil && strings.HasPrefix(to, "socket:[") && listens[to] {
				return true, nil
			}
		}
	}
	return false, nil
}
