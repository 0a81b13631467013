// Package page has the common parts of the shop's web pages: the content security policy, a handler for
// embedded files, and the identification of callers for limits.
package page

import (
	"embed"
	"net/http"
	"net/netip"
	"path"

	"github.com/gin-gonic/gin"
)

// Policy is the Content-Security-Policy of each page: it may load files of the shop and nothing else.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// File serves an embedded file.
func File(files embed.FS, name string) gin.HandlerFunc {
	body, err := files.ReadFile(name)
	contentType := map[string]string{".html": "text/html", ".js": "text/javascript", ".css": "text/css"}[path.Ext(name)]
	if err != nil || contentType == "" { // only a wrong name in the program can cause this
		panic("no page's file: " + name)
	}
	return func(c *gin.Context) {
		c.Header("Content-Security-Policy", Policy)
		c.Header("X-Content-Type-Options", "nosniff")
		c.Header("Cache-Control", "no-cache") // another shop at this address may serve other files
		c.Data(http.StatusOK, contentType+"; charset=utf-8", body)
	}
}

// Caller returns the address that limits apply to: the client's address, or for IPv6 its network, since one
// machine may have many addresses in a network. It returns "" for this machine, which has no limit. It
// ignores headers of proxies, since any client can set them.
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
