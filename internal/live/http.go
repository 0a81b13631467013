package live

import (
	"embed"
	"net/http"
	"path"

	"github.com/gin-gonic/gin"
)

//go:embed web
var web embed.FS

// policy lets the page load its own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// files are the page's own, by their route.
func files() map[string]string {
	routes := map[string]string{"/": "index.html"}
	for _, name := range []string{"style.css", "app.js", "lane.js", "leader.js", "past.js", "picture.js", "shapes.js"} {
		routes["/live/"+name] = name
	}
	return routes
}

// Routes adds the page, its files and the stream.
func (h *Hub) Routes(r gin.IRouter) {
	for route, name := range files() {
		r.GET(route, file(name))
	}
	r.GET("/live/events", gin.WrapH(h.Events()))
}

func file(name string) gin.HandlerFunc {
	body, err := web.ReadFile("web/" + name)
	if err != nil { // it is embedded: only a wrong name here can fail
		panic(err)
	}
	contentType := map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}[path.Ext(name)]
	return func(c *gin.Context) {
		c.Header("Content-Security-Policy", policy)
		c.Header("X-Content-Type-Options", "nosniff")
		c.Header("Cache-Control", "no-cache") // another shop may serve other files
		c.Data(http.StatusOK, contentType, body)
	}
}
