package judge

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
)

type traffic struct {
	commands atomic.Int64
	begun    atomic.Int64              // transactions; a write outside a transaction counts as one
	hold     func(ctx context.Context) // called before each SQL command; may be nil
}

// purchases is the number of purchases whose commands are counted, after a first one that opens the
// connections.
const purchases = 10

// trips returns the average number of commands of a purchase without competitors.
func (s *subject) trips(ctx context.Context) (_ float64, err error) {
	t := &traffic{}
	e, err := s.open(ctx, t)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	d := onengine.Deps(e)
	d.Settings = s.settings
	seller := s.seller(d, "")
	if err := product.Put(e.Admin, first, 2*purchases); err != nil {
		return 0, err
	}
	for i := range 1 + purchases {
		if i == 1 {
			t.commands.Store(0)
		}
		o := kata.Order{Product: first, Purchaser: fmt.Sprintf("buyer-%d", i+1), Amount: 1}
		err := s.within(o.Purchaser+", alone,", func() error { _, err := seller.Buy(ctx, o); return err })
		if err != nil {
			return 0, wrongf("%s, alone, is not sold to: %v", o.Purchaser, err)
		}
	}
	return float64(t.commands.Load()) / purchases, seller.Close()
}

// sent counts a command for the database, and calls the function `hold`.
func (t *traffic) sent(ctx context.Context) {
	t.commands.Add(1)
	if t.hold != nil {
		t.hold(ctx)
	}
}

// DialHook implements redis.Hook.
func (t *traffic) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (t *traffic) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		t.commands.Add(1)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook. A pipeline is one round trip.
func (t *traffic) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		t.commands.Add(1)
		return next(ctx, cmds)
	}
}

func (t *traffic) connector(c driver.Connector) driver.Connector { return counted{c, t} }

type counted struct {
	driver.Connector
	t *traffic
}

// Connect implements driver.Connector.
func (c counted) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: inner, t: c.t}, nil
}

// countedConn is a connection that counts commands. It has exactly the methods of those of SQLite's driver.
type countedConn struct {
	driver.Conn
	t    *traffic
	open bool // whether a transaction is open; a connection has one user at a time
}

// statement counts a command before it is sent, and calls the function `hold`.
func (c *countedConn) statement(ctx context.Context, query string) {
	verb, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	if !c.open && !strings.EqualFold(verb, "SELECT") {
		c.t.begun.Add(1)
	}
	c.t.sent(ctx)
}

func (c *countedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.statement(ctx, query)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.statement(ctx, query)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *countedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.statement(ctx, query)
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c *countedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.t.begun.Add(1)
	c.t.sent(ctx)
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.open = true
	return countedTx{tx, c}, nil
}

type countedTx struct {
	driver.Tx
	conn *countedConn
}

func (x countedTx) Commit() error   { x.ended(); return x.Tx.Commit() }
func (x countedTx) Rollback() error { x.ended(); return x.Tx.Rollback() }

func (x countedTx) ended() {
	x.conn.open = false
	x.conn.t.commands.Add(1)
}

// patience limits how long a drill waits until the other buyers wait too, since they may never do so.
const patience = 2 * time.Second
