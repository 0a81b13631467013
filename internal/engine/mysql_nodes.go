package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/oversell/oversell/internal/engine/sqlconn"
)

// nodes tracks the servers of one cluster for one process. The process uses one node at a time, its present
// node. If that node is dead, the process moves to another. The methods are safe for concurrent use.
type nodes struct {
	configs []*mysqldriver.Config // in the process's order of preference
	session string                // first statement of each connection, or ""

	mu     sync.Mutex
	at     int               // index of the node for new connections
	failed map[int]time.Time // last failure of a node, by index
	asked  time.Time         // when the preferred nodes, those before the present one, were last checked
}

const (
	// nodeTimeout limits the time in which a node must accept a connection and a first statement. A frozen
	// node accepts connections and stays silent.
	nodeTimeout = 3 * time.Second
	// nodeRest is how long a node is tried last after a failure.
	nodeRest = 5 * time.Second
)

// newNodes returns the nodes of a process. Process i prefers host i modulo n.
func newNodes(configs []*mysqldriver.Config, first int) *nodes {
	first %= len(configs)
	return &nodes{configs: slices.Concat(configs[first:], configs[:first]), failed: map[int]time.Time{}}
}

// order returns the order in which nodes are tried: the present node, then the others, and last those that
// failed recently.
func (n *nodes) order() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	order := []int{n.at}
	for i := range n.configs {
		if i != n.at {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return n.rests(a) - n.rests(b) })
	return order
}

func (n *nodes) rests(i int) int {
	if time.Since(n.failed[i]) < nodeRest {
		return 1
	}
	return 0
}

// left records that the process had to leave node i, which is dead or accepts no statements.
func (n *nodes) left(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed[i] = time.Now()
}

// reached records that node i is the present node.
func (n *nodes) reached(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.failed, i)
	n.at = i
}

// stays reports whether the process still uses node i, so that a connection to it can be used. From
// time to time it starts a check of the preferred nodes.
func (n *nodes) stays(i int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at > 0 && time.Since(n.asked) > nodeRest {
		n.asked = time.Now()
		go n.back(n.at)
	}
	return i == n.at
}

// back moves the process to the first live node that it prefers to its present node. `from` is the index of
// the present node.
func (n *nodes) back(from int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(from)*nodeTimeout)
	defer cancel()
	for i := range from {
		if conn, err := n.connect(ctx, i); err == nil {
			_ = conn.Close() // the connection was only a check
			n.reached(i)
			return
		}
	}
}

// connect connects to a node and checks that it accepts statements.
func (n *nodes) connect(ctx context.Context, i int) (driver.Conn, error) {
	conn, err := n.within(ctx, i)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		// This time-out is the node's and not the buyer's, so the node counts as down.
		return nil, &net.OpError{Op: "connect", Net: "tcp", Err: fmt.Errorf("it was silent for %s", nodeTimeout)}
	}
	return conn, err
}

func (n *nodes) within(ctx context.Context, i int) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	connector, err := mysqldriver.NewConnector(n.configs[i])
	if err != nil {
		return nil, err
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	err = takesStatements(ctx, conn)
	if err == nil && n.session != "" {
		_, err = conn.(driver.ExecerContext).ExecContext(ctx, n.session, nil)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// takesStatements checks that a node accepts statements. A Galera node that has lost the others, or that is
// catching up, answers but refuses reads and writes. SHOW STATUS would tell that too, but may hang while the
// cluster waits for dead nodes.
func takesStatements(ctx context.Context, conn driver.Conn) error {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, "SELECT 1", nil)
	if err != nil {
		return err
	}
	return rows.Close()
}

// Connect implements driver.Connector.
func (n *nodes) Connect(ctx context.Context) (driver.Conn, error) {
	var errs []error
	for _, i := range n.order() {
		conn, err := n.try(ctx, i)
		if err == nil {
			return &nodeConn{conn.(sqlconn.Conn), n, i, false}, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		errs = append(errs, fmt.Errorf("%s: %w", n.configs[i].Addr, err))
	}
	return nil, errors.Join(errs...)
}

// try connects to one node and records the result. A buyer may give up before a silent node reaches its
// time-out. try records the result even then; otherwise the process would never move to the next node.
func (n *nodes) try(ctx context.Context, i int) (driver.Conn, error) {
	type result struct {
		conn driver.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := n.connect(context.WithoutCancel(ctx), i)
		if err == nil {
			n.reached(i)
		} else {
			n.left(i)
		}
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.conn.Close() // the buyer has given up
			}
		}()
		return nil, ctx.Err()
	}
}

// Driver implements driver.Connector.
func (n *nodes) Driver() driver.Driver { return &mysqldriver.MySQLDriver{} }

// nodeConn is a connection to one node. It is discarded if the process moves to another node, or if
// the node stops accepting statements.
type nodeConn struct {
	sqlconn.Conn
	nodes *nodes
	at    int
	gone  bool
}

const (
	// notReady is ER_UNKNOWN_COM_ERROR, "WSREP has not yet prepared node for application use".
	notReady = 1047
	// refused is ER_LOCK_DEADLOCK: the transaction was rolled back, for example because another node
	// committed first.
	refused = 1213
)

// seen inspects the error of a statement. A node that is not ready refuses statements and executes nothing.
// Then seen marks the connection as unusable, and the next connection goes to another node.
func (c *nodeConn) seen(err error) error {
	var said *mysqldriver.MySQLError
	if errors.As(err, &said) && said.Number == notReady {
		c.gone = true
		c.nodes.left(c.at)
	}
	return err
}

// BeginTx implements driver.ConnBeginTx.
func (c *nodeConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, o)
	if _ = c.seen(err); c.gone {
		return nil, driver.ErrBadConn // BEGIN has no effect, so database/sql can use another connection
	}
	if err != nil {
		return nil, err
	}
	return nodeTx{tx, c}, nil
}

// nodeTx discards its connection if COMMIT or ROLLBACK fails. The transaction may still be open, and
// the next BEGIN on the connection would commit it.
type nodeTx struct {
	driver.Tx
	conn *nodeConn
}

// Commit implements driver.Tx.
func (t nodeTx) Commit() error { return t.ended(t.Tx.Commit()) }

// Rollback implements driver.Tx.
func (t nodeTx) Rollback() error { return t.ended(t.Tx.Rollback()) }

func (t nodeTx) ended(err error) error {
	var said *mysqldriver.MySQLError
	rolledBack := errors.As(err, &said) && said.Number == refused
	t.conn.gone = t.conn.gone || err != nil && !rolledBack
	return t.conn.seen(err)
}

// ExecContext implements driver.ExecerContext.
func (c *nodeConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.ExecContext(ctx, query, args)
	return result, c.seen(err)
}

// QueryContext implements driver.QueryerContext.
func (c *nodeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, query, args)
	return rows, c.seen(err)
}

// ResetSession implements driver.SessionResetter. It is called before a connection is reused.
func (c *nodeConn) ResetSession(ctx context.Context) error {
	if c.gone || !c.nodes.stays(c.at) {
		return driver.ErrBadConn
	}
	return c.Conn.ResetSession(ctx)
}

// IsValid implements driver.Validator.
func (c *nodeConn) IsValid() bool { return !c.gone && c.Conn.IsValid() }
