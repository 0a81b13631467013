package explore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sqlConnector makes connections whose commands stop at the gate. The state
// that a strategy meets is the driver's; only when it goes on is decided here.
type sqlConnector struct {
	driver.Connector
	gates    *gates
	database database
	owner    int // the buyer; 0: the context says

	mu    sync.Mutex
	conns map[*sqlConn]struct{}
}

func (c *sqlConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := &sqlConn{Conn: inner, from: c, buyer: c.owner}
	if conn.id, err = c.database.id(ctx, inner); err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = struct{}{}
	return conn, nil
}

// open returns the connections there are, of one buyer.
func (c *sqlConnector) open(buyer int) (conns []*sqlConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		if conn.buyer == buyer {
			conns = append(conns, conn)
		}
	}
	return conns
}

// sqlConn is one connection. Like every driver.Conn it is used by one
// goroutine at a time.
type sqlConn struct {
	driver.Conn
	from  *sqlConnector
	id    int64 // the database's name for it
	buyer int   // who uses it

	inTx, touched bool // a transaction is open, and has read or written
	serializable  bool
	dead          atomic.Bool // killed: nobody may use it again
	closed        bool        // guarded by from.mu
}

// BeginTx is driver.ConnBeginTx.
func (c *sqlConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	o := c.op(ctx, "BEGIN", nil)
	if sql.IsolationLevel(opts.Isolation) == sql.LevelSerializable {
		o.name = "BEGIN (serializable)"
	}
	o.text, o.effect = o.name, local
	var tx driver.Tx
	err := c.from.gates.pass(o, func() (err error) {
		tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
		if err == nil {
			c.inTx, c.touched = true, false
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
	conn *sqlConn
	ctx  context.Context // when it ends, database/sql rolls back, beside the buyer
}

func (t *sqlTx) Commit() error   { return t.end("COMMIT", t.tx.Commit) }
func (t *sqlTx) Rollback() error { return t.end("ROLLBACK", t.tx.Rollback) }

func (t *sqlTx) end(name string, end func() error) error {
	o := t.conn.op(context.WithoutCancel(t.ctx), name, nil)
	if name == "ROLLBACK" && t.ctx.Err() != nil {
		o.aside, o.note = true, "its context has ended"
	}
	return t.conn.from.gates.pass(o, func() error {
		wrote := t.conn.touched
		err := end()
		t.conn.inTx, t.conn.touched, t.conn.serializable = false, false, false
		o.ends, o.changed = true, wrote
		return o.done(err, "")
	})
}

// ExecContext is driver.ExecerContext.
func (c *sqlConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	o := c.op(ctx, query, args)
	var result driver.Result
	err := c.from.gates.pass(o, func() error {
		got, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		if _, err = c.from.database.answer(ctx, o, nil, err); err != nil {
			return o.done(err, "")
		}
		n, _ := got.RowsAffected()
		result = got
		c.after(o, n > 0)
		if o.controls() { // SQLite says how many the statement before has changed
			return o.done(nil, "")
		}
		return o.done(nil, rowCount(n))
	})
	return result, err
}

// QueryContext is driver.QueryerContext. The rows are read to their end here:
// a cursor left open would be part of the next step.
func (c *sqlConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	o := c.op(ctx, query, args)
	var kept *rows
	err := c.from.gates.pass(o, func() error {
		got, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		if err == nil {
			kept, err = keep(got)
		}
		if kept, err = c.from.database.answer(ctx, o, kept, err); err != nil {
			return o.done(err, "")
		}
		c.after(o, true)
		return o.done(nil, kept.String())
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}

// after notes what a statement that succeeded did to the transaction.
func (c *sqlConn) after(o *op, rows bool) {
	switch o.name {
	case "BEGIN IMMEDIATE":
		c.inTx, c.touched = true, true
	case "COMMIT", "ROLLBACK":
		c.inTx, c.touched = false, false
		o.ends = true
	default:
		c.touched = c.touched || c.inTx
		o.ends = !c.inTx && o.effect == writes
	}
	o.changed = o.effect == writes && rows
}

// controls: it begins or ends a transaction.
func (o *op) controls() bool {
	return o.name == "BEGIN IMMEDIATE" || o.name == "COMMIT" || o.name == "ROLLBACK"
}

// op describes a statement.
func (c *sqlConn) op(ctx context.Context, query string, args []driver.NamedValue) *op {
	if c.from.owner == 0 {
		if id := buyerOf(ctx, 0); id != 0 {
			c.buyer = id
		}
	}
	query = strings.Join(strings.Fields(strings.ReplaceAll(query, "`", "")), " ")
	o := &op{buyer: c.buyer, server: "sql", name: query, text: withValues(query, slices.Clone(args)), ctx: ctx, conn: c}
	upper := strings.ToUpper(query)
	if strings.HasPrefix(upper, "SELECT") && !c.serializable && !strings.Contains(upper, " FOR ") && !strings.Contains(upper, "_LOCK(") {
		o.effect = reads
	}
	return o
}

// namedLock: it asks for a lock of GET_LOCK.
func (o *op) namedLock() bool { return strings.Contains(o.name, "GET_LOCK(") }

func (o *op) done(err error, result string) error {
	o.result = result
	if err != nil {
		o.result = "error: " + err.Error()
	}
	return err
}

// Close is driver.Conn.Close.
func (c *sqlConn) Close() error {
	c.from.mu.Lock()
	delete(c.from.conns, c)
	closed := c.closed
	c.closed = true
	c.from.mu.Unlock()
	if closed {
		return nil
	}
	err := c.Conn.Close()
	if c.dead.Load() { // there is nobody to say goodbye to
		return nil
	}
	return err
}

// CheckNamedValue is driver.NamedValueChecker.
func (c *sqlConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// ResetSession is driver.SessionResetter.
func (c *sqlConn) ResetSession(ctx context.Context) error {
	if c.dead.Load() {
		return driver.ErrBadConn
	}
	if resetter, ok := c.Conn.(driver.SessionResetter); ok {
		return resetter.ResetSession(ctx)
	}
	return nil
}

// IsValid is driver.Validator.
func (c *sqlConn) IsValid() bool {
	if c.dead.Load() {
		return false
	}
	validator, ok := c.Conn.(driver.Validator)
	return !ok || validator.IsValid()
}

// rows are a result that was read to its end.
type rows struct {
	columns []string
	values  [][]driver.Value
	next    int
}

func keep(from driver.Rows) (*rows, error) {
	kept := &rows{columns: from.Columns()}
	for {
		row := make([]driver.Value, len(kept.columns))
		err := from.Next(row)
		if errors.Is(err, io.EOF) {
			return kept, from.Close()
		}
		if err != nil {
			return nil, errors.Join(err, from.Close())
		}
		for i := range row {
			if b, ok := row[i].([]byte); ok { // the driver's buffer
				row[i] = append([]byte(nil), b...)
			}
		}
		kept.values = append(kept.values, row)
	}
}

func (r *rows) Columns() []string { return r.columns }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(dest []driver.Value) error {
	if r.next == len(r.values) {
		return io.EOF
	}
	copy(dest, r.values[r.next])
	r.next++
	return nil
}

// String shows what a buyer read: not the names it asked by, nor what is 0 as
// long as nobody uses it.
func (r *rows) String() string {
	if len(r.values) == 0 {
		return "no row"
	}
	var lines []string
	for _, row := range r.values {
		var cells []string
		for i, column := range r.columns {
			value := show(row[i])
			switch column {
			case "id", "name", "stocked", "product_name", "purchase_time", "strategy", "idempotency_key", "waited_ms", "left_after":
				if len(r.columns) > 1 {
					continue
				}
				if column == "id" {
					value = "N" // it counts on from run to run
				}
			case "version", "fence", "last_entry":
				if value == "0" || value == "0-0" {
					continue
				}
			}
			if name, _, ok := strings.Cut(column, "("); ok { // GET_LOCK('...', 5)
				column = name
			}
			cells = append(cells, column+"="+value)
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return strings.Join(lines, "; ")
}

func rowCount(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

func show(v driver.Value) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		return string(v)
	case time.Time:
		return "now"
	}
	return fmt.Sprint(v)
}

// withValues puts the arguments where the question marks are.
func withValues(query string, args []driver.NamedValue) string {
	var b strings.Builder
	var columns []string
	if strings.HasPrefix(query, "INSERT INTO") {
		_, list, _ := strings.Cut(query, "(")
		list, _, _ = strings.Cut(list, ")")
		columns = strings.Split(list, ",")
	}
	for i := 0; i < len(query); i++ {
		if query[i] != '?' || len(args) == 0 {
			b.WriteByte(query[i])
			continue
		}
		if len(columns) > 0 && columns[0] == "waited_ms" { // different in each run
			args[0].Value = "MS"
		}
		if len(columns) > 0 {
			columns = append(columns[1:], columns[0])
		}
		switch v := args[0].Value.(type) {
		case string, []byte:
			b.WriteString("'" + show(v) + "'")
		default:
			b.WriteString(show(v))
		}
		args = args[1:]
	}
	return b.String()
}
