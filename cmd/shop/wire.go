package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/singleflight"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/history"
	"github.com/oversell/oversell/internal/live"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/problem"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/purchase"
)

//go:embed openapi.yaml
var openAPI []byte

// A shop is the service on one engine. This file is the one place that knows
// every room.
type shop struct {
	engine   *engine.Engine
	flags    shopFlags
	log      *slog.Logger
	metrics  *metrics
	hub      *live.Hub
	counter  *purchase.Counter
	locks    []purchase.Resetter
	workers  []purchase.Worker
	closers  []io.Closer
	deadline time.Duration // of a server that is asked whether it is there
	asking   singleflight.Group
}

func newShop(e *engine.Engine, f shopFlags, log *slog.Logger) *shop {
	s := &shop{engine: e, flags: f, log: log, metrics: newMetrics(), hub: live.NewHub(), deadline: 2 * time.Second}
	deps := onengine.Deps(e)
	deps.Settings, deps.Observe = f.settings, s.lockEvent
	built, missing := lockstrategy.Build(deps)
	s.counter = &purchase.Counter{
		Strategies: map[string]purchase.Strategy{}, Missing: missing, Resolve: lockstrategy.Resolver(),
		History: func(ctx context.Context, name string, after int64, limit int) ([]purchase.Record, error) {
			records, err := purchase.Page(e.DB.WithContext(ctx), name, after, limit)
			return records, purchase.DatabaseError(ctx, "read the history", err)
		},
		Wait: f.settings.Wait, Down: s.databaseDown, Seats: make(chan struct{}, f.maxInflight), Watch: s,
	}
	for name, strategy := range built {
		s.add(name, strategy)
	}
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
	if s.flags.failpoints != nil {
		strategy = s.flags.failpoints.Named(strategy)
	}
	s.counter.Strategies[name] = purchase.NewIdempotent(strategy, s.engine.DB)
}

// handler has every route of the shop. addr is where it listens, token what
// admin routes ask for elsewhere than on loopback.
func (s *shop) handler(addr net.Addr, token string) *gin.Engine {
	r := gin.New()
	r.RedirectTrailingSlash = false // a redirect would be no problem+json
	r.UseRawPath = true             // a product may be called "a/b", sent as a%2Fb
	r.HandleMethodNotAllowed = true
	r.Use(identify, logRequests(s.log), recoverPanics(s.log), limitBody, problem.CheckQuery)
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
	r.GET("/strategies", s.strategies)
	r.GET("/healthz", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) })
	r.GET("/readyz", s.ready)
	r.GET("/metrics", gin.WrapH(s.metrics.handler()))
	r.GET("/openapi.yaml", func(c *gin.Context) { c.Data(http.StatusOK, "application/yaml", openAPI) })
	s.hub.Routes(r)
	return r
}

// restock resets a product with its records and its locks, while no buy of
// this process is in flight. The locks go first: when their server is down,
// stock and records are as they were.
func (s *shop) restock(ctx context.Context, name string, amount int64) error {
	if err := s.databaseDown(ctx); err != nil { // before the buyers are held back
		return fmt.Errorf("nothing was restocked: %w", err)
	}
	return s.counter.Closed(ctx, name, func() error {
		for _, lock := range s.locks {
			if err := lock.Reset(ctx, name); err != nil {
				return fmt.Errorf("nothing was restocked: %w", err)
			}
		}
		err := purchase.InLockingTx(ctx, s.engine.Admin, func(tx *gorm.DB) error {
			if err := product.Put(tx, name, amount); err != nil {
				return purchase.DatabaseError(ctx, "restock", err)
			}
			return purchase.DatabaseError(ctx, "clear the records", purchase.Clear(tx, name))
		})
		for _, lock := range s.locks {
			if keeper, ok := lock.(purchase.StockKeeper); ok && err == nil {
				err = keeper.Reset(ctx, name)
			}
		}
		if err == nil {
			s.publish(history.Event{Kind: history.Restocked, At: time.Now(), Product: name, Amount: amount})
		}
		return err
	})
}

// databaseDown asks the database for a sign of life, for all who want to know at
// the same time.
func (s *shop) databaseDown(ctx context.Context) error {
	_, err, _ := s.asking.Do("database", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.deadline)
		defer cancel()
		return nil, s.engine.Admin.WithContext(ctx).Exec("SELECT 1").Error
	})
	if err != nil {
		return &purchase.Unavailable{Server: "database", Err: err}
	}
	return nil
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

// availableStrategy is an entry of the catalogue, and whether it can run here.
type availableStrategy struct {
	lockstrategy.Entry
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`
}

func (s *shop) strategies(c *gin.Context) {
	var list []availableStrategy
	for _, e := range lockstrategy.All() {
		why := s.counter.Missing[e.Name]
		promised := promise.Promise{}
		for fault := range e.Promise {
			if v := e.Promised(fault, s.engine.DB.Name()); v != "" {
				promised[fault] = v
			}
		}
		e.Promise, e.PromiseSQLite = promised, nil // what holds here
		list = append(list, availableStrategy{e, why == "", why})
	}
	c.JSON(http.StatusOK, list)
}

func (s *shop) ready(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), s.deadline)
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

// Called is purchase.Watcher.Called.
func (s *shop) Called(strategy string, o purchase.Order) {
	s.metrics.called()
	s.publish(history.Event{Kind: history.Call, At: time.Now(), Strategy: strategy, Product: o.Product, Purchaser: o.Purchaser})
}

// TurnedAway is purchase.Watcher.TurnedAway.
func (s *shop) TurnedAway(strategy string, o purchase.Order) {
	s.metrics.turnedAway(strategy)
	now := time.Now()
	s.publish(history.Event{Kind: history.Call, At: now, Strategy: strategy, Product: o.Product, Purchaser: o.Purchaser})
	s.publish(history.Event{
		Kind: history.Return, At: now, Strategy: strategy, Product: o.Product, Purchaser: o.Purchaser, Outcome: string(purchase.Busy),
	})
}

// Returned is purchase.Watcher.Returned.
func (s *shop) Returned(strategy string, o purchase.Order, r purchase.Receipt, outcome purchase.Outcome, called time.Time) {
	now := time.Now()
	s.metrics.returned(strategy, r, outcome, now.Sub(called))
	e := history.Event{
		Kind: history.Return, At: now, Strategy: strategy, Product: o.Product, Purchaser: o.Purchaser, Outcome: string(outcome),
	}
	switch {
	case r.Replayed:
		e.Kind = history.Replay
	case outcome == purchase.Sold:
		e.Amount, e.Left = r.Amount, &r.Left
	}
	s.publish(e)
}

// lockEvent is the lockstrategy.Observer. A buyer that waits and has a token
// already has been admitted by a strategy that writes elsewhere: redis-lua.
func (s *shop) lockEvent(ctx context.Context, e lockstrategy.Event) {
	if s.flags.failpoints != nil && e.Kind == lockstrategy.Waiting && e.Token != "" {
		defer s.flags.failpoints.Admitted(ctx)
	}
	s.publish(history.Event{
		Kind: history.Kind(e.Kind), At: e.At, Strategy: e.Strategy, Product: e.Product, Purchaser: e.Purchaser, Token: e.Token,
	})
}

// publish tells the live page, and who has started this shop with failpoints.
func (s *shop) publish(e history.Event) {
	if s.flags.failpoints != nil {
		s.flags.failpoints.Record(e)
	}
	s.hub.Publish(e)
}
