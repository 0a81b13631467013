package app

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// places checks that no two listen at one address, and that buyers and readiness are asked for
// where a program can be.
func (a *App) places(*file) error {
	taken := map[string]string{} // who listens, by the address
	for _, name := range protocols {
		at := a.Gate(name)
		if at == "" {
			continue
		}
		if other := taken[listens(at)]; other != "" {
			return fmt.Errorf("%s and %s are both %s; each has an address of its own", other, name, at)
		}
		taken[listens(at)] = name
	}
	asked := []struct{ key, target string }{{"ready", a.Ready}}
	for _, b := range a.Buyers {
		asked = append(asked, struct{ key, target string }{"buyer", b.URL})
	}
	for _, one := range asked {
		u, err := url.Parse(one.target)
		if err != nil || one.target == "" {
			continue
		}
		port := u.Port()
		if port == "" {
			port = "80"
		}
		at := net.JoinHostPort(u.Hostname(), port)
		ip, err := netip.ParseAddr(u.Hostname())
		if outside := err == nil && !ip.IsLoopback() && !ip.IsUnspecified(); outside && a.Attach == nil {
			return fmt.Errorf("%s: %s is not in the program's own network, which has loopback alone; give http://127.0.0.1:%s", one.key, at, port)
		}
		if gate := taken[listens(at)]; gate != "" {
			return fmt.Errorf("%s: %s is where the gate for %s listens; give the port at which the program serves", one.key, at, gate)
		}
	}
	return nil
}

// listens is an address as who listens there takes it: all of loopback is one.
func listens(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address // never: it was checked before
	}
	ip, err := netip.ParseAddr(host)
	if strings.EqualFold(host, "localhost") || err == nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
