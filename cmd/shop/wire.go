package main

import (
	"context"
	_ "embed"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/singleflight"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/teach/live"
	"github.com/oversell/oversell/internal/teach/live/runs"
	"github.com/oversell/oversell/internal/teach/play/host"
	"github.com/oversell/oversell/internal/teach/room"
	"github.com/oversell/oversell/internal/web/problem"
)

//go:embed openapi.yaml
var openAPI []byte

// A shop is the service on one engine. This file is the one place that knows
// every room.
type shop struct {
	engine      *engine.Engine
	flags       shopFlags
	log         *slog.Logger
	watch       *watcher
	runs        *runs.Keeper
	counter     *purchase.Counter
	room        *room.Room
	locks       []purchase.Resetter
	workers     []purchase.Worker
	closers     []io.Closer
	deadline    time.Duration // of a server that is asked whether it is there
	asking      singleflight.Group
	connections *connections
	soldOut     *purchase.SoldOutCheck // of the strategies that sell from product.amount
	admission   *purchase.Admission    // of all strategies
	games       *host.Host             // nil: none are played
}

func newShop(e *engine.Engine, f shopFlags, log *slog.Logger) *shop {
	s := &shop{
		engine: e, flags: f, log: log, connections: newConnections(1 << 30), deadline: 2 * time.Second,
		watch: &watcher{metrics: newMetrics(), hub: live.NewHub(soldTells), failpoints: f.failpoints},
	}
	s.runs = runs.NewKeeper(s.watch.hub, stage{e, f})
	s.soldOut = s.newCheck(func(db *gorm.DB, name string) (int64, error) {
		p, err := product.ByName(db, name)
		return p.Amount, err
	})
	s.admission = purchase.NewAdmission(f.settings.Wait)
	deps := onengine.Deps(e)
	deps.Settings, deps.Observe = f.settings, s.watch.lockEvent
	built, missing := lockstrategy.Build(deps)
	s.counter = &purchase.Counter{
		Strategies: map[string]purchase.Strategy{}, Missing: missing, Resolve: lockstrategy.Resolver(),
		History: func(ctx context.Context, name string, after int64, limit int) ([]purchase.Record, error) {
			records, err := purchase.Page(e.DB.WithContext(ctx), name, after, limit)
			return records, purchase.DatabaseError(ctx, "read the history", err)
		},
		Wait: f.settings.Wait, Down: s.databaseDown, Seats: make(chan struct{}, f.maxInflight), Watch: s.watch,
	}
	for name, strategy := range built {
		s.add(name, strategy)
	}
	s.room = s.newRoom()
	return s
}

// add puts a strategy on the counter, with all that it has beside the buy.
func (s *shop) add(name string, strategy purchase.Strategy) {
	if lock, ok := strategy.(purchase.Resetter); ok {
		s.locks = append(s.locks, lock)
	}
	if closer, ok := strategy.(io.Closer); ok {
		s.closers = append(s.closers, closer)
	}
	if worker, ok := strategy.(purchase.Worker); ok {
		s.workers = append(s.workers, worker)
	}
	if s.flags.gather > 0 {
		strategy = &gathering{Strategy: strategy, buyers: s.flags.gather, byProduct: map[string]*gathered{}}
	}
	if s.flags.failpoints != nil {
		strategy = s.flags.failpoints.Named(strategy)
	}
	if s.flags.check {
		strategy = s.checkFor(name).Before(strategy)
	}
	strategy = purchase.NewIdempotent(strategy, s.engine.Causal)
	if s.flags.admission == adaptive {
		strategy = s.admission.Before(name, strategy)
	}
	s.counter.Strategies[name] = strategy
}

// handler has every route of the shop. addr is where it listens, token what
// admin routes ask for elsewhere than on loopback.
func (s *shop) handler(addr net.Addr, token string) *gin.Engine {
	r := gin.New()
	r.RedirectTrailingSlash = false // a redirect would be no problem+json
	r.UseRawPath = true             // a product may be called "a/b", sent as a%2Fb
	r.HandleMethodNotAllowed = true
	r.Use(s.connections.lastAnswer, identify, logRequests(s.log), recoverPanics(s.log), onlyKnownHosts(addr, s.flags.hosts), limitBody, problem.CheckQuery)
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
	if s.games != nil {
		s.games.Public = !isLoopback(addr)
		s.games.Routes(r)
	}
	s.runs.Routes(r, adminOnly(addr, token))
	return r
}

// work starts what the strategies do beside the buys; stop ends it and waits,
// and closes the strategies.
func (s *shop) work(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, worker := range s.workers {
		all.Go(func() { worker.Work(ctx) })
	}
	return func() {
		cancel()
		all.Wait()
		for _, closer := range s.closers {
			if err := closer.Close(); err != nil {
				s.log.Warn("close a strategy", "error", err)
			}
		}
	}
}
