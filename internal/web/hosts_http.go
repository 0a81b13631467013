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

// onlyKnownHosts refuses requests to a name that is not this shop's. On a loopback address
// there is no token: a page of anybody's could have its own name resolved to 127.0.0.1 and
// then restock by the user's browser, which takes both for one origin (DNS rebinding). What
// the attacker cannot choose is the name: it stands in Host.
//
// Allowed are the names of loopback (RFC 6761, 6.3), the address that the request came in
// at, and those that are given. On other addresses every name is, unless some are given.
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
		if host == "" || allowed[host] || isOwn(c.Request, host) { // no Host is HTTP/1.0, which browsers do not speak
			return
		}
		problem.Write(c, http.StatusMisdirectedRequest, "failed",
			fmt.Sprintf("this shop is not called %q; shop serve --allowed-host lets it be", host))
	}
}

// isOwn: host is a name or an address of loopback, or the address that the request came in at.
func isOwn(r *http.Request, host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost" || strings.HasSuffix(host, ".localhost")
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ip.Unmap().IsLoopback() || ok && local.AddrPort().Addr().Unmap() == ip.Unmap()
}

// plainHost is a Host without its port, its brackets, the dot at its end, and capitals.
func plainHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
