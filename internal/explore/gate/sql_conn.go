package gate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// A Conn is one connection. Like every driver.Conn it is used by one
// goroutine at a time.
type Conn struct {
	driver.Conn
	from  *Connector
	id    int64        // the database's number of the connection
	buyer atomic.Int64 // the buyer that uses it; atomic, since database/sql may roll back after the buyer's answer

	transaction
	dead   atomic.Bool // killed: it may not be used again
	closed bool        // guarded by from.mu
}

// A transaction is what is known of the one that a connection has open, if it has.
type transaction struct {
	inTx, touched atomic.Bool // one is open, and has read or written
	wrote         bool        // it has changed rows
	serializable  bool
	locking       atomic.Pointer[string] // the text of its first statement that locks or writes; nil before one
}

// ID is serverstate.Conn.ID.
func (c *Conn) ID() int64 { return c.id }

// Buyer returns the buyer that uses it; 0: none yet.
func (c *Conn) Buyer() int { return int(c.buyer.Load()) }

// Alive: it was not ended.
func (c *Conn) Alive() bool { return !c.dead.Load() }

// InTransaction: one is open.
func (t *transaction) InTransaction() bool { return t.inTx.Load() }

// Holds describes the open transaction and its first statement that locks or writes; "" if none is
// open. It is safe to call while a worker of the strategy uses the connection.
func (t *transaction) Holds() string {
	first := t.locking.Load()
	switch {
	case !t.InTransaction():
		return ""
	case first == nil:
		return "an open transaction"
	}
	return "an open transaction (" + *first + ")"
}

// Viewing: a transaction is open that has read or written, so it may have a view of
// the database of its own.
func (t *transaction) Viewing() bool { return t.inTx.Load() && t.touched.Load() }

// Abandon is serverstate.Conn.Abandon.
func (c *Conn) Abandon() { c.dead.Store(true) }

// BeginTx is driver.ConnBeginTx.
func (c *Conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	o := c.op(ctx, "BEGIN", nil)
	if sql.IsolationLevel(opts.Isolation) == sql.LevelSerializable {
		o.Name = "BEGIN (serializable)"
	}
	o.Text, o.Effect = o.Name, schedule.Local
	var tx driver.Tx
	err := c.from.gates.Pass(o, func() (err error) {
		tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
		if err == nil {
			c.opens(false)
			c.serializable = sql.IsolationLevel(opts.Isolation) == sql.LevelSerializable
		}
		return o.done(err, "")
	})
	if err != nil {
		return nil, err
	}
	return &sqlTx{tx, c, ctx}, nil
}

type sqlTx struct {
	tx   driver.Tx
	conn *Conn
	ctx  context.Context // when it ends, database/sql rolls back, beside the buyer
}

func (t *sqlTx) Commit() error   { return t.end("COMMIT", t.tx.Commit) }
func (t *sqlTx) Rollback() error { return t.end("ROLLBACK", t.tx.Rollback) }

func (t *sqlTx) end(name string, end func() error) error {
	o := t.conn.op(context.WithoutCancel(t.ctx), name, nil)
	if name == "ROLLBACK" && t.ctx.Err() != nil {
		o.Background, o.Note = true, "its context has ended"
	}
	return t.conn.from.gates.Pass(o, func() error {
		touched := t.conn.touched.Load()
		err := end()
		o.Ends, o.Changed, o.Commits = true, touched, name == "COMMIT" && t.conn.wrote
		t.conn.closes()
		return o.done(err, "")
	})
}

// ExecContext is driver.ExecerContext.
func (c *Conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	o := c.op(ctx, query, args)
	var result driver.Result
	err := c.from.gates.Pass(o, func() error {
		got, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		if _, err = c.from.database.Answer(ctx, o.statement(), nil, err); err != nil {
			return o.done(err, "")
		}
		result = got
		if o.Controls { // SQLite says how many rows the statement before has changed, in an earlier schedule maybe
			c.after(o, false, false)
			return o.done(nil, "")
		}
		n, _ := got.RowsAffected()
		c.after(o, n > 0, n > 0)
		if id, err := got.LastInsertId(); err == nil && strings.HasPrefix(o.Name, "INSERT") { // of others it is that of an INSERT before
			o.Answer = fmt.Sprintf("%s, id %d", rowCount(n), id)
		}
		return o.done(nil, rowCount(n))
	})
	return result, err
}

// QueryContext is driver.QueryerContext. The rows are read to their end here:
// a cursor left open would be part of the next step.
func (c *Conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	o := c.op(ctx, query, args)
	var kept *serverstate.Rows
	err := c.from.gates.Pass(o, func() error {
		got, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		if err == nil {
			kept, err = serverstate.Keep(got)
		}
		if kept, err = c.from.database.Answer(ctx, o.statement(), kept, err); err != nil {
			return o.done(err, "")
		}
		c.after(o, true, !kept.Empty())
		o.Answer = kept.Whole()
		return o.done(nil, kept.String())
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}

// opens notes that a transaction is open, and whether it has touched anything.
func (t *transaction) opens(touched bool) {
	t.touched.Store(touched)
	t.wrote = false
	t.locking.Store(nil)
	t.inTx.Store(true)
}

// closes notes that none is open any more.
func (t *transaction) closes() {
	t.inTx.Store(false)
	t.touched.Store(false)
	t.wrote, t.serializable = false, false
}

// after notes what a statement that succeeded did to the transaction.
// changed: it has rows that it has written, if it writes.
func (c *Conn) after(o *Op, rows, changed bool) {
	switch o.Name {
	case "BEGIN IMMEDIATE":
		c.opens(true)
	case "BEGIN", "START TRANSACTION":
		c.opens(false)
	case "COMMIT", "ROLLBACK":
		o.Ends, o.Commits = true, o.Name == "COMMIT" && c.wrote
		c.closes()
	default:
		changed = changed && o.Effect == schedule.Writes
		c.touched.Store(c.touched.Load() || c.inTx.Load())
		c.wrote = c.wrote || changed
		if c.inTx.Load() && o.Effect == schedule.Writes {
			text := o.Text
			c.locking.CompareAndSwap(nil, &text)
		}
		o.Ends = !c.inTx.Load() && o.Effect == schedule.Writes
		o.Commits = changed && !c.inTx.Load()
	}
	o.Changed = o.Effect == schedule.Writes && rows
}

// controls are the statements that begin or end a transaction. A strategy may send them as plain
// statements instead of calling database/sql's methods.
var controls = []string{"BEGIN", "START TRANSACTION", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"}

// quotes of names, MySQL's and PostgreSQL's.
var quotes = strings.NewReplacer("`", "", `"`, "")

// op describes a statement.
func (c *Conn) op(ctx context.Context, query string, args []driver.NamedValue) *Op {
	if c.from.owner == 0 {
		if id := BuyerOf(ctx, 0); id != 0 {
			c.buyer.Store(int64(id))
		}
	}
	known := effect.SQL(query, c.from.database.Dialect)
	query = strings.Join(strings.Fields(quotes.Replace(query)), " ")
	o := &Op{Buyer: c.Buyer(), Server: SQL, Name: query, Text: withValues(query, slices.Clone(args)), ctx: ctx, conn: c}
	o.Controls = slices.Contains(controls, query)
	o.Asks, o.Gives = strings.Contains(query, "GET_LOCK("), strings.Contains(query, "RELEASE_LOCK(")
	if o.Effect = known.Effect; o.Effect == schedule.Reads && c.serializable {
		o.Effect = schedule.Writes // a SELECT locks what it reads, or counts on it
	}
	return o
}

// Close is driver.Conn.Close.
func (c *Conn) Close() error {
	c.from.mu.Lock()
	delete(c.from.conns, c)
	closed := c.closed
	c.closed = true
	c.from.mu.Unlock()
	if closed {
		return nil
	}
	err := c.Conn.Close()
	if c.dead.Load() { // the other end has gone
		return nil
	}
	return err
}

// CheckNamedValue is driver.NamedValueChecker.
func (c *Conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// ResetSession is driver.SessionResetter.
func (c *Conn) ResetSession(ctx context.Context) error {
	if c.dead.Load() {
		return driver.ErrBadConn
	}
	if resetter, ok := c.Conn.(driver.SessionResetter); ok {
		return resetter.ResetSession(ctx)
	}
	return nil
}

// IsValid is driver.Validator.
func (c *Conn) IsValid() bool {
	if c.dead.Load() {
		return false
	}
	validator, ok := c.Conn.(driver.Validator)
	return !ok || validator.IsValid()
}
