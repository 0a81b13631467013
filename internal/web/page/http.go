// Package page has what every page of the shop has in common: its policy, how its embedded files
// are served, and who a caller counts as where one may have only so much.
package page

import (
	"embed"
	"net/http"
	"net/netip"
	"path"

	"github.com/gin-gonic/gin"
)

// Policy lets a page load its own files and nothing else.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// File serves an embedded file.
func File(files embed.FS, name string) gin.HandlerFunc {
	body, err := files.ReadFile(name)
	contentType := map[string]string{".html": "text/html", ".js": "text/javascript", ".css": "text/css"}[path.Ext(name)]
	if err != nil || contentType == "" { // it is embedded: only a wrong name in the program can fail
		panic("no page's file: " + name)
	}
	return func(c *gin.Context) {
		c.Header("Content-Security-Policy", Policy)
		c.Header("X-Content-Type-Options", "nosniff")
		c.Header("Cache-Control", "no-cache") // another shop may serve other files
		c.Data(http.StatusOK, contentType+"; charset=utf-8", body)
	}
}

// Caller is whom a request counts for: the remote address, of IPv6 the network, since a machine
// has as many addresses in it as it wants. "" is this machine, which is not bounded. What a
// proxy says of who is behind it counts for nothing: anybody can say it.
func Caller(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.IsLoopback() {
		return ""
	}
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}
