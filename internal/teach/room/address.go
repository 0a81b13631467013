package room

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"rsc.io/qr"
)

// Pages returns the URLs at which phones can probably open their page of a shop that listens on addr, the
// most likely first. For a loopback address it returns none.
func Pages(addr net.Addr) ([]string, error) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return nil, nil
	}
	if !tcp.IP.IsUnspecified() {
		return []string{pageAt(tcp.AddrPort().Addr().Unmap(), tcp.Port)}, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	var found []netip.Addr
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil {
			found = append(found, prefix.Addr().Unmap())
		}
	}
	found = likeliest(found, outward(), tcp.IP.To4() != nil)
	pages := make([]string, len(found))
	for i, ip := range found {
		pages[i] = pageAt(ip, tcp.Port)
	}
	return pages, nil
}

// likeliest returns the addresses that other machines may reach. The source address of outgoing connections
// comes first. Then come private IPv4 addresses, as in most classroom networks, and then the rest.
func likeliest(all []netip.Addr, outward netip.Addr, onlyV4 bool) []netip.Addr {
	all = slices.DeleteFunc(slices.Clone(all), func(ip netip.Addr) bool {
		return !ip.IsGlobalUnicast() || onlyV4 && !ip.Is4()
	})
	rank := func(ip netip.Addr) int {
		switch {
		case ip == outward:
			return 0
		case ip.Is4() && ip.IsPrivate():
			return 1
		case ip.Is4():
			return 2
		}
		return 3
	}
	slices.SortStableFunc(all, func(a, b netip.Addr) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// outward returns the source address of outgoing connections, or an invalid address if there is no route. To
// find it, outward connects a UDP socket, which sends nothing. The destination is reserved for documentation
// (RFC 5737).
func outward() netip.Addr {
	conn, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return netip.Addr{}
	}
	defer conn.Close()
	local, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return netip.Addr{}
	}
	return local.AddrPort().Addr().Unmap()
}

func pageAt(ip netip.Addr, port int) string {
	return "http://" + net.JoinHostPort(ip.String(), strconv.Itoa(port)) + "/room"
}

// quiet is the width of the white margin of a QR code, in modules (ISO/IEC 18004 requires four).
const quiet = 4

// code returns a QR code as SVG: black on white in any theme, since readers expect that.
func code(text string) ([]byte, error) {
	c, err := qr.Encode(text, qr.Q)
	if err != nil {
		return nil, fmt.Errorf("QR code of %q: %w", text, err)
	}
	size := c.Size + 2*quiet
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" shape-rendering="crispEdges">`, size, size)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/><path fill="#000" d="`, size, size)
	for y := range c.Size {
		for x := 0; x < c.Size; x++ {
			from := x
			for x < c.Size && c.Black(x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", from+quiet, y+quiet, x-from, x-from)
			}
		}
	}
	b.WriteString(`"/></svg>`)
	return b.Bytes(), nil
}
