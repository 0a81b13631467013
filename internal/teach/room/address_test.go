package room

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"rsc.io/qr"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

// TestReachable: phones get an address of the network, and none on loopback.
func TestReachable(t *testing.T) {
	for _, c := range []struct {
		addr string
		want []string
	}{
		{"127.0.0.1:8080", nil},
		{"[::1]:8080", nil},
		{"192.168.1.5:8080", []string{"http://192.168.1.5:8080/room"}},
		{"[2001:db8::1]:80", []string{"http://[2001:db8::1]:80/room"}},
	} {
		got, err := Pages(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.addr)))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.addr, got, err, c.want)
		}
	}
	everywhere, err := Pages(&net.TCPAddr{IP: net.IPv4zero, Port: 80})
	for _, page := range everywhere {
		if strings.Contains(page, "127.") || strings.Contains(page, "[") || err != nil {
			t.Errorf("of 0.0.0.0: %q, %v", everywhere, err)
		}
	}
}

func TestLikeliest(t *testing.T) {
	all := []netip.Addr{}
	for _, text := range []string{"127.0.0.1", "169.254.1.1", "fe80::1", "2001:db8::1", "203.0.113.7", "172.17.0.1", "192.168.1.5", "::1"} {
		all = append(all, netip.MustParseAddr(text))
	}
	for _, c := range []struct {
		outward string
		onlyV4  bool
		want    string
	}{
		{"192.168.1.5", true, "192.168.1.5 172.17.0.1 203.0.113.7"},
		{"203.0.113.7", false, "203.0.113.7 172.17.0.1 192.168.1.5 2001:db8::1"},
	} {
		var got []string
		for _, ip := range likeliest(all, netip.MustParseAddr(c.outward), c.onlyV4) {
			got = append(got, ip.String())
		}
		expect.Equal(t, strings.Join(got, " "), c.want, "outward", c.outward, got)
	}
}

// TestCode: the drawing has exactly the black modules of the code, inside a white margin.
func TestCode(t *testing.T) {
	const text = "http://192.168.1.5:8080/room"
	svg, err := code(text)
	require.NoError(t, err)
	want, err := qr.Encode(text, qr.Q)
	require.NoError(t, err)
	var drawing struct {
		ViewBox string `xml:"viewBox,attr"`
		Rect    struct {
			Fill string `xml:"fill,attr"`
		} `xml:"rect"`
		Path struct {
			D string `xml:"d,attr"`
		} `xml:"path"`
	}
	require.NoError(t, xml.NewDecoder(bytes.NewReader(svg)).Decode(&drawing))
	black := map[[2]int]bool{}
	for _, run := range strings.Split(strings.TrimSuffix(drawing.Path.D, "z"), "z") {
		var x, y, n, back int
		if _, err := fmt.Sscanf(run, "M%d %dh%dv1h-%d", &x, &y, &n, &back); err != nil || back != n {
			t.Fatalf("%q: %v", run, err)
		}
		for i := range n {
			black[[2]int{x + i, y}] = true
		}
	}
	for y := -quiet; y < want.Size+quiet; y++ {
		for x := -quiet; x < want.Size+quiet; x++ {
			if got := black[[2]int{x + quiet, y + quiet}]; got != want.Black(x, y) {
				t.Fatalf("module %d, %d: black is %t", x, y, got)
			}
		}
	}
	if drawing.Rect.Fill != "#fff" || drawing.ViewBox != "0 0 37 37" || want.Size != 29 {
		t.Errorf("%+v of a code of %d modules; want white below, and 4 modules around", drawing.Rect, want.Size)
	}
}
