package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/web/problem"
)

// CheckHosts returns an error for the first of the names that cannot be the Host of a request.
func CheckHosts(names []string) error {
	for _, name := range names {
		if _, err := netip.ParseAddr(name); err == nil {
			continue
		}
		if name == "" || len(name) > 253 || strings.ContainsAny(name, "/:*[]@ \t\r\n,?#") {
			return fmt.Errorf("--allowed-host must be a name such as shop.example, without scheme, port and wildcard (got %q)", name)
		}
	}
	return nil
}

// onlyKnownHosts refuses requests whose Host is not a name of this shop, against DNS rebinding. On a loopback
// address the shop needs no token. An attacker's page could let its own name resolve to 127.0.0.1 and restock
// from the user's browser, which would consider page and shop the same origin. But the page cannot change the
// Host header that the browser sends.
//
// The shop accepts the names of loopback (RFC 6761, 6.3), the address that the client connected to, and the
// names in `given`. A shop on any other address accepts every name if `given` is empty.
func onlyKnownHosts(addr net.Addr, given []string) gin.HandlerFunc {
	if !isLoopback(addr) && len(given) == 0 {
		return func(*gin.Context) {}
	}
	allowed := map[string]bool{}
	for _, name := range given {
		allowed[plainHost(name)] = true
	}
	return func(c *gin.Context) {
		host := plainHost(c.Request.Host)
		if host == "" || allowed[host] || isOwn(c.Request, host) { // a request without Host is HTTP/1.0, which browsers do not use
			return
		}
		problem.Write(c, http.StatusMisdirectedRequest, "failed",
			fmt.Sprintf("this shop is not called %q; shop serve --allowed-host lets it be", host))
	}
}

// isOwn reports whether host is a name or an address of loopback, or the address that the client connected to.
func isOwn(r *http.Request, host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost" || strings.HasSuffix(host, ".localhost")
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ip.Unmap().IsLoopback() || ok && local.AddrPort().Addr().Unmap() == ip.Unmap()
}

// plainHost returns a Host in lower case without its port, its brackets, and the dot at its end.
func plainHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
