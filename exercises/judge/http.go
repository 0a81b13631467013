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
	"gorm.io/gorm"

	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/localserver"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// conns are a shop's to a database server.
const conns = 64

// serve is a shop with the learner's code as its one strategy, on the servers that the
// environment names as it does for shop serve. args are its wait and its lease; a third one
// has it obey failpoints.
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
	config := engine.Config{DB: os.Getenv("SHOP_DB_URL"), Redis: os.Getenv("SHOP_REDIS_URL"), Wait: s.settings.Wait, Lease: s.settings.LeaseTTL, Conns: conns}
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
	return 2, server.Serve(l) // until whoever has started it ends it
}

// shop has the routes that a crowd needs.
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
		Wait: s.settings.Wait, Down: func(context.Context) error { return nil }, Seats: make(chan struct{}, 10_000), Watch: unwatched{},
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
				return errors.Join(err, e.Redis.FlushDB(ctx).Err()) // whatever the code keeps there
			})
		},
	}.Routes(r, func(*gin.Context) {})
	audit.Routes(r, e.DB)
	r.GET("/readyz", func(c *gin.Context) { c.Status(http.StatusOK) })
	return r
}

// unwatched is a shop without a live page.
type unwatched struct{}

func (unwatched) Called(string, purchase.Order) {}

func (unwatched) Returned(string, purchase.Order, purchase.Receipt, purchase.Outcome, time.Time) {}

func (unwatched) TurnedAway(string, purchase.Order) {}
