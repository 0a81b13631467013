package live

import (
	"embed"

	"github.com/gin-gonic/gin"

	pages "github.com/oversell/oversell/internal/web/page"
)

//go:embed web
var web embed.FS

// files maps the routes of the page's files to their names.
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
		r.GET(route, pages.File(web, "web/"+name))
	}
	r.GET("/live/events", gin.WrapH(h.Events()))
}
