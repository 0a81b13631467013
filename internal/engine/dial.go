package engine

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
)

// Detours say where to connect instead of an address, by host:port. A server of a
// cluster announces itself under an address of its own, so a test that puts a proxy
// between one shop and one server must be able to lead the shop to it.
type Detours map[string]string

// ParseDetours reads "host:port=host:port,..."; "" is none.
func ParseDetours(text string) (Detours, error) {
	if text == "" {
		return nil, nil
	}
	d := Detours{}
	for pair := range strings.SplitSeq(text, ",") {
		from, to, _ := strings.Cut(pair, "=")
		for _, address := range []string{from, to} {
			if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
				return nil, fmt.Errorf("%q is not host:port=host:port", pair)
			}
		}
		if _, twice := d[from]; twice {
			return nil, fmt.Errorf("%s is there twice", from)
		}
		d[from] = to
	}
	return d, nil
}

// String is what ParseDetours reads.
func (d Detours) String() string {
	var pairs []string
	for _, from := range slices.Sorted(maps.Keys(d)) {
		pairs = append(pairs, from+"="+d[from])
	}
	return strings.Join(pairs, ",")
}

// To is the address to connect to.
func (d Detours) To(address string) string {
	if to, ok := d[address]; ok {
		return to
	}
	return address
}

// dialer is what the drivers connect with; nil, which is their own, where there are no
// detours. It is not for TLS.
func (d Detours) dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	if len(d) == 0 {
		return nil
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer // the drivers set a deadline in ctx
		return dialer.DialContext(ctx, network, d.To(address))
	}
}
