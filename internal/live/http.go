package live

import (
	"embed"
	"net/http"

	"github.com/gin-gonic/gin"
)

//go:embed web
var web embed.FS

// policy lets the page load its own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Routes adds the page, its two files and the stream.
func (h *Hub) Routes(r gin.IRouter) {
	r.GET("/", file("web/index.html", "text/html; charset=utf-8"))
	r.GET("/live/app.js", file("web/app.js", "text/javascript; charset=utf-8"))
	r.GET("/live/style.css", file("web/style.css", "text/css; charset=utf-8"))
	r.GET("/live/events", gin.WrapH(h.Events()))
}

func file(name, contentType string) gin.HandlerFunc {
	body, err := web.ReadFile(name)
	if err != nil { // it is embedded: only a wrong name here can fail
		panic(err)
	}
	return func(c *gin.Context) {
		c.Header("Content-Security-Policy", policy)
		c.Header("X-Content-Type-Options", "nosniff")
		c.Data(http.StatusOK, contentType, body)
	}
}
