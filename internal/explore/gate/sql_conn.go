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
	"github.com/oversell/oversell/internal/plural"
)

// A Conn is one connection. As with every driver.Conn, only one goroutine may use it at a time.
type Conn struct {
	driver.Conn
	from  *Connector
	id    int64        // the connection's number in the database
	buyer atomic.Int64 // its user; atomic, since database/sql may roll back after the buyer's answer

	transaction
	dead   atomic.Bool // killed: it must not be used again
	closed bool        // guarded by from.mu
}

// A transaction records the observations of the gate about a connection's open transaction.
type transaction struct {
	inTx, touched atomic.Bool // inTx: a transaction is open; touched: it has read or written
	wrote         bool        // it has changed rows
	serializable  bool
	locking       atomic.Pointer[string] // text of its first statement that locks or writes; nil if there is none yet
}

// ID implements serverstate.Conn.
func (c *Conn) ID() int64 { return c.id }

// Buyer returns the buyer that uses the connection; 0: no buyer yet.
func (c *Conn) Buyer() int { return int(c.buyer.Load()) }

// Alive reports whether the connection is still usable.
func (c *Conn) Alive() bool { return !c.dead.Load() }

// InTransaction reports whether a transaction is open.
func (t *transaction) InTransaction() bool { return t.inTx.Load() }

// Holds describes the open transaction and its first statement that locks or writes; "" if no transaction is
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

// Viewing reports whether an open transaction has read or written, so that it may see an older state.
func (t *transaction) Viewing() bool { return t.inTx.Load() && t.touched.Load() }

// Abandon implements serverstate.Conn.
func (c *Conn) Abandon() { c.dead.Store(true) }

// BeginTx implements driver.ConnBeginTx.
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
	ctx  context.Context // when it ends, database/sql rolls back, concurrently with the buyer
}

func (t *sqlTx) Commit() error   { return t.end("COMMIT", t.tx.Commit) }
func (t *sqlTx) Rollback() error { return t.end("ROLLBACK", t.tx.Rollback) }

func (t *sqlTx) end(name string, end func() error) error {
	o := t.conn.op(context.WithoutCancel(t.ctx), name, nil)
	if name == "ROLLBACK" && t.ctx.Err() != nil {
		o.Background, o.Note = true, "its context has ended"
	}
	ends := func(end func() error, commits bool) error {
		touched := t.conn.touched.Load()
		err := end()
		o.Ends, o.Changed, o.Commits = true, touched, commits && t.conn.wrote
		t.conn.closes()
		return o.done(err, "")
	}
	if name == "COMMIT" {
		o.undo = func() error { return ends(t.tx.Rollback, false) }
	}
	return t.conn.from.gates.Pass(o, func() error { return ends(end, name == "COMMIT") })
}

// ExecContext implements driver.ExecerContext.
func (c *Conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	o := c.op(ctx, query, args)
	var result driver.Result
	err := c.from.gates.Pass(o, func() error {
		got, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		if _, err = c.from.database.Answer(ctx, o.statement(), nil, err); err != nil {
			return o.done(err, "")
		}
		result = got
		if o.Controls { // SQLite's row count would be that of an earlier statement
			c.after(o, false, false)
			return o.done(nil, "")
		}
		n, _ := got.RowsAffected()
		c.after(o, n > 0, n > 0)
		if id, err := got.LastInsertId(); err == nil && strings.HasPrefix(o.Name, "INSERT") { // other statements return the id of an earlier INSERT
			o.Answer = fmt.Sprintf("%s, id %d", plural.Count(n, "row"), id)
		}
		return o.done(nil, plural.Count(n, "row"))
	})
	return result, err
}

// QueryContext implements driver.QueryerContext. It reads all rows at once, so that no later step reads from
// the server.
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

// opens records that a transaction is open. The parameter `touched` is true if the transaction has already read
// or written.
func (t *transaction) opens(touched bool) {
	t.touched.Store(touched)
	t.wrote = false
	t.locking.Store(nil)
	t.inTx.Store(true)
}

func (t *transaction) closes() {
	t.inTx.Store(false)
	t.touched.Store(false)
	t.wrote, t.serializable = false, false
}

// after records the effect of a successful statement on the transaction. The parameter `changed` is true if a
// writing statement has changed rows.
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

// controls begin or end a transaction. A strategy may send them as plain statements.
var controls = []string{"BEGIN", "START TRANSACTION", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"}

// quotes removes the quotes around names in MySQL and PostgreSQL.
var quotes = strings.NewReplacer("`", "", `"`, "")

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
		o.Effect = schedule.Writes // it locks the rows that it reads, or the server validates them later
	}
	return o
}

// Close implements driver.Conn.
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
	if c.dead.Load() { // the other side has already closed it
		return nil
	}
	return err
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *Conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// ResetSession implements driver.SessionResetter.
func (c *Conn) ResetSession(ctx context.Context) error {
	if c.dead.Load() {
		return driver.ErrBadConn
	}
	if resetter, ok := c.Conn.(driver.SessionResetter); ok {
		return resetter.ResetSession(ctx)
	}
	return nil
}

// IsValid implements driver.Validator.
func (c *Conn) IsValid() bool {
	if c.dead.Load() {
		return false
	}
	validator, ok := c.Conn.(driver.Validator)
	return !ok || validator.IsValid()
}
