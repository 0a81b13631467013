package engine

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
)

// Detours maps an address, host:port, to the address that a client connects to instead. A server of a cluster
// announces its own address, so clients would bypass a proxy that a test puts in front of it.
type Detours map[string]string

// ParseDetours parses "host:port=host:port,..."; "" means none.
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
			return nil, fmt.Errorf("%s occurs twice", from)
		}
		d[from] = to
	}
	return d, nil
}

// String returns the form that ParseDetours reads.
func (d Detours) String() string {
	var pairs []string
	for _, from := range slices.Sorted(maps.Keys(d)) {
		pairs = append(pairs, from+"="+d[from])
	}
	return strings.Join(pairs, ",")
}

// To returns the address to connect to for this address: its detour, or the address itself.
func (d Detours) To(address string) string {
	if to, ok := d[address]; ok {
		return to
	}
	return address
}

// dialer returns a dial function for the drivers. Without detours it returns nil, so that the drivers use their
// own. The function does not support TLS.
func (d Detours) dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	if len(d) == 0 {
		return nil
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer // the drivers set a deadline in ctx
		return dialer.DialContext(ctx, network, d.To(address))
	}
}
