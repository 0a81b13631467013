package web

import (
	_ "embed"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/web/problem"
)

//go:embed openapi.yaml
var openAPI []byte

// handler returns the handler with every route of the shop. The shop listens at addr. If that is not a
// loopback address, admin routes require the token.
func (s *Shop) handler(addr net.Addr, token string) *gin.Engine {
	r := gin.New()
	r.RedirectTrailingSlash = false // a redirect would not be problem+json
	r.UseRawPath = true             // a product may be called "a/b", sent as a%2Fb
	r.HandleMethodNotAllowed = true
	r.Use(s.connections.lastAnswer, identify, logRequests(s.log), recoverPanics(s.log), onlyKnownHosts(addr, s.config.Hosts), limitBody, problem.CheckQuery)
	r.NoRoute(func(c *gin.Context) {
		problem.Write(c, http.StatusNotFound, "failed", "no such route; GET /openapi.yaml lists them")
	})
	r.NoMethod(func(c *gin.Context) {
		problem.Write(c, http.StatusMethodNotAllowed, "failed", "this route takes "+c.Writer.Header().Get("Allow"))
	})
	s.counter.Routes(r)
	product.Shelf{
		DB: s.engine.DB, Restock: s.restock,
		WriteError: func(c *gin.Context, err error) {
			purchase.WriteError(c, purchase.DatabaseError(c.Request.Context(), "product", err))
		},
	}.Routes(r, adminOnly(addr, token))
	audit.Routes(r, s.engine.DB)
	s.room.Routes(r, adminOnly(addr, token), addr)
	r.GET("/strategies", s.strategies)
	r.GET("/healthz", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) })
	r.GET("/readyz", s.ready)
	r.GET("/metrics", gin.WrapH(s.watch.metrics.handler()))
	r.GET("/openapi.yaml", func(c *gin.Context) { c.Data(http.StatusOK, "application/yaml", openAPI) })
	s.watch.hub.Routes(r)
	if games := s.config.Games; games != nil {
		games.Public = !isLoopback(addr)
		games.Routes(r)
	}
	if s.runs != nil {
		s.runs.Routes(r, adminOnly(addr, token))
	}
	return r
}

// availableStrategy is an entry of the catalogue of lock strategies, and whether it can run on this shop's
// servers.
type availableStrategy struct {
	lockstrategy.Entry
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`
}

func (s *Shop) strategies(c *gin.Context) {
	var list []availableStrategy
	for _, e := range lockstrategy.All() {
		why := s.counter.Missing[e.Name]
		promised := promise.Promise{}
		for fault := range e.Promise {
			if v := e.Promised(fault, s.engine.Database); v != "" {
				promised[fault] = v
			}
		}
		e.Promise, e.PromiseOn = promised, nil // the promise on this engine
		list = append(list, availableStrategy{e, why == "", why})
	}
	c.JSON(http.StatusOK, list)
}

// ready reports whether every configured server answers.
func (s *Shop) ready(c *gin.Context) {
	ctx, cancel := pulse.WithTimeout(c.Request.Context(), s.silence)
	defer cancel()
	down := s.engine.Check(ctx)
	if len(down) == 0 {
		c.JSON(http.StatusOK, gin.H{"status": "ready"})
		return
	}
	var what []string
	for _, server := range slices.Sorted(maps.Keys(down)) {
		what = append(what, "the "+server+" is down: "+down[server].Error())
	}
	c.Header("Retry-After", "1")
	problem.Write(c, http.StatusServiceUnavailable, "failed", strings.Join(what, "; "))
}
