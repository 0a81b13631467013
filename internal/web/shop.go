// Package web is the shop as a service over HTTP. It offers the strategies, serves the routes, and
// shuts down without cutting off a buyer.
//
//	engine -> New -> Shop -> Serve
//
// It is the only package that knows every part of a serving shop. http.go has the routes,
// middleware_http.go the handlers for every request, connections.go the limit on connections.
package web

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/teach/live"
	"github.com/oversell/oversell/internal/teach/live/runs"
	"github.com/oversell/oversell/internal/teach/play/host"
	"github.com/oversell/oversell/internal/teach/room"
)

// Config says how a shop serves.
type Config struct {
	Settings       lockstrategy.Settings
	MaxInflight    int            // concurrent buys; further ones are answered busy
	MaxConnections int            // concurrent connections, as many as this process can open files for; 0: unlimited
	SoldOutCheck   bool           // answer buyers of a sold-out product before a strategy takes a lock
	Admission      bool           // answer busy at once if a buyer could not be served in time
	Hosts          []string       // further names that the Host of a request may have
	Failpoints     *failpoint.Set // where to inject faults; nil unless `shop verify` has started the shop
	Sender         runs.Sender    // sends the bursts of buyers of the live page; nil: the page offers none
	Games          *host.Host     // nil: the shop has no games
}

// A Shop serves on one engine.
type Shop struct {
	config      Config
	engine      *engine.Engine
	log         *slog.Logger
	watch       *watcher
	runs        *runs.Keeper // nil without a Sender
	counter     *purchase.Counter
	room        *room.Room
	locks       []purchase.Resetter
	workers     []purchase.Worker
	closers     []io.Closer
	silence     time.Duration // time after which a server without an answer counts as down
	asking      singleflight.Group
	connections *connections
	front       purchase.Front
}

// New returns a shop with every strategy that the engine can run.
func New(e *engine.Engine, c Config, log *slog.Logger) *Shop {
	s := &Shop{
		config: c, engine: e, log: log, connections: newConnections(affordable(c.MaxConnections)), silence: 2 * time.Second,
		watch: &watcher{metrics: newMetrics(), hub: live.NewHub(soldTells), failpoints: c.Failpoints},
	}
	if c.Sender != nil {
		s.runs = runs.NewKeeper(s.watch.hub, c.Sender)
	}
	s.front = s.newFront()
	deps := onengine.Deps(e)
	deps.Settings, deps.Observe = c.Settings, s.watch.lockEvent
	if c.Failpoints != nil {
		deps.Now = c.Failpoints.Now
	}
	built, missing := lockstrategy.Build(deps)
	s.counter = &purchase.Counter{
		Strategies: map[string]purchase.Strategy{}, Missing: missing, Resolve: lockstrategy.Resolver(),
		History: func(ctx context.Context, name string, after int64, limit int) ([]purchase.Record, error) {
			records, err := purchase.Page(e.DB.WithContext(ctx), name, after, limit)
			return records, purchase.DatabaseError(ctx, "read the history", err)
		},
		Wait: c.Settings.Wait, Down: s.downFor, Seats: make(chan struct{}, c.MaxInflight), Watch: s.watch,
	}
	for name, strategy := range built {
		s.Add(name, strategy)
	}
	s.room = s.newRoom()
	return s
}

// Add adds a strategy, and registers its methods Reset, Close and Work if it has them.
func (s *Shop) Add(name string, strategy purchase.Strategy) {
	if lock, ok := strategy.(purchase.Resetter); ok {
		s.locks = append(s.locks, lock)
	}
	if closer, ok := strategy.(io.Closer); ok {
		s.closers = append(s.closers, closer)
	}
	if worker, ok := strategy.(purchase.Worker); ok {
		s.workers = append(s.workers, worker)
	}
	entry, _ := lockstrategy.ByName(name) // a test may add a strategy that is not in the catalogue
	strategy = s.front.Before(name, entry.Left, strategy)
	s.counter.Strategies[name] = strategy
}

// Observe receives the lock events of strategies.
func (s *Shop) Observe(ctx context.Context, e lockstrategy.Event) { s.watch.lockEvent(ctx, e) }

// Work starts the background work of the strategies. The result `stop` ends that work, waits for it, and closes
// the strategies.
func (s *Shop) Work(ctx context.Context) (stop func()) {
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
