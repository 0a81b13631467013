package app

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// places checks that no two listeners share an address. It also checks that no request goes to a gate
// instead of the program, or leaves the program's own network.
func (a *App) places(*file) error {
	taken := map[string]string{} // listener by address
	for _, name := range protocols {
		at := a.Gate(name)
		if at == "" {
			continue
		}
		if other := taken[listens(at)]; other != "" {
			return fmt.Errorf("%s and %s must have different addresses (got %s for both)", other, name, at)
		}
		taken[listens(at)] = name
	}
	asked := []struct{ key, target string }{{"ready", a.Ready}}
	for _, b := range a.Buyers {
		asked = append(asked, struct{ key, target string }{"buyer", b.URL})
	}
	for _, r := range a.Requests {
		asked = append(asked, struct{ key, target string }{"requests", r.URL})
	}
	for _, b := range a.Before {
		asked = append(asked, struct{ key, target string }{"before", b.URL})
	}
	for _, r := range a.Reset.HTTP {
		asked = append(asked, struct{ key, target string }{"reset: http", r.URL})
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
			return fmt.Errorf("%s: %s is outside the program's own network; use http://127.0.0.1:%s", one.key, at, port)
		}
		if gate := taken[listens(at)]; gate != "" {
			return fmt.Errorf("%s: %s is the address of the gate for %s; use the port at which the program serves", one.key, at, gate)
		}
	}
	return nil
}

// Origin returns the scheme, host and port of the program's URL; "" if oversell.yaml contains none.
func (a *App) Origin() string {
	asked := []string{a.Ready}
	for _, r := range slices.Concat(a.Buyers, a.Requests) {
		asked = append(asked, r.URL)
	}
	for _, target := range asked {
		if u, err := url.Parse(target); err == nil && u.Host != "" {
			return u.Scheme + "://" + u.Host
		}
	}
	return ""
}

// listens normalizes the address of a listener: all names of the loopback become 127.0.0.1.
func listens(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address // cannot happen: it was checked before
	}
	ip, err := netip.ParseAddr(host)
	if strings.EqualFold(host, "localhost") || err == nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
