package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9/logging"
	"gorm.io/gorm"

	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

const conns = 64

// serve runs a shop with the learner's code as its only strategy. As in `shop serve`, environment variables
// name the servers. The parameter `args` has the time limit of a buy and the duration of a lease. A third
// argument turns the failpoints on, at which faults are injected.
func (s *subject) serve(ctx context.Context, args []string, out io.Writer) (int, error) {
	if len(args) < 2 {
		return 2, errors.New("serve takes a wait and a lease")
	}
	var errs [2]error
	s.settings.Wait, errs[0] = time.ParseDuration(args[0])
	s.settings.LeaseTTL, errs[1] = time.ParseDuration(args[1])
	if err := errors.Join(errs[0], errs[1]); err != nil {
		return 2, err
	}
	config, err := engine.FromEnviron()
	if err != nil {
		return 2, err
	}
	config.Redlock, config.Zookeeper, config.Etcd = config.Redlock[:s.further()], nil, nil
	config.Wait, config.Lease, config.Conns = s.settings.Wait, s.settings.LeaseTTL, conns
	var points *failpoint.Set
	if len(args) > 2 {
		points = failpoint.New(out)
		config.WrapDB = points.Connector
	}
	e, err := engine.Open(ctx, config)
	if err != nil {
		return 2, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 2, err
	}
	fmt.Fprintf(out, "%shttp://%s\n", localserver.Listening, l.Addr())
	if points != nil {
		go points.Obey(os.Stdin)
	}
	server := &http.Server{Handler: s.shop(e, points), ReadHeaderTimeout: 5 * time.Second}
	return 2, server.Serve(l) // serves until the parent process ends this one
}

func (s *subject) shop(e *engine.Engine, points *failpoint.Set) http.Handler {
	d := onengine.Deps(e)
	d.Settings = s.settings
	var strategy purchase.Strategy = s.seller(d, "")
	if points != nil {
		strategy = points.Named(strategy)
	}
	counter := &purchase.Counter{
		Strategies: map[string]purchase.Strategy{kata.Name: strategy}, Resolve: func(string) string { return kata.Name },
		History: func(ctx context.Context, name string, after int64, limit int) ([]purchase.Record, error) {
			return purchase.Page(e.DB.WithContext(ctx), name, after, limit)
		},
		Wait: s.settings.Wait, Down: func(context.Context, string) error { return nil }, Seats: make(chan struct{}, 10_000), Watch: watcher{points},
	}
	r := gin.New()
	r.UseRawPath = true
	counter.Routes(r)
	product.Shelf{
		DB: e.DB, WriteError: purchase.WriteError,
		Restock: func(ctx context.Context, name string, amount int64) error {
			return counter.Closed(ctx, name, func() error {
				err := purchase.InLockingTx(ctx, e.Admin, func(tx *gorm.DB) error {
					return errors.Join(product.Put(tx, name, amount), purchase.Clear(tx, name))
				})
				watcher{points}.record(history.Event{Kind: history.Restocked, Product: name, Amount: amount})
				for _, store := range stores(e) {
					err = errors.Join(err, store.FlushDB(ctx).Err()) // all keys of the code
				}
				return err
			})
		},
	}.Routes(r, func(*gin.Context) {})
	audit.Routes(r, e.DB)
	for _, route := range []string{"/healthz", "/readyz"} { // the code that injects faults requests the first route of a process that it has stopped
		r.GET(route, func(c *gin.Context) { c.Status(http.StatusOK) })
	}
	return r
}

func quiet() {
	gin.SetMode(gin.ReleaseMode)
	logging.Disable()
}

// A watcher records the events of buyers, by which a run with faults is judged. Without failpoints, it
// records nothing.
type watcher struct{ points *failpoint.Set }

func (w watcher) record(e history.Event) {
	if w.points != nil {
		e.At, e.Strategy = time.Now(), kata.Name
		w.points.Record(e)
	}
}

// Called implements purchase.Watcher.
func (w watcher) Called(_ string, o purchase.Order) {
	w.record(history.Event{Kind: history.Call, Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount})
}

// Returned implements purchase.Watcher.
func (w watcher) Returned(_ string, o purchase.Order, r purchase.Receipt, outcome purchase.Outcome, _, _ time.Time) {
	e := history.Event{Kind: history.Return, Product: o.Product, Purchaser: o.Purchaser, Outcome: string(outcome)}
	if outcome == purchase.Sold {
		e.Amount, e.Left = r.Amount, &r.Left
	}
	w.record(e)
}

// TurnedAway implements purchase.Watcher.
func (w watcher) TurnedAway(_ string, o purchase.Order) {
	w.Called("", o)
	w.Returned("", o, purchase.Receipt{}, purchase.Busy, time.Now(), time.Time{})
}
