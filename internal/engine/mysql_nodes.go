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

// nodes are the servers of one cluster, as one process uses them: it is at one of them at a
// time, and at another when that one is dead. Its methods may be called by several
// goroutines.
type nodes struct {
	configs []*mysqldriver.Config // in the order in which this process tries them
	session string                // a statement that each connection begins with, or ""

	mu     sync.Mutex
	at     int               // of configs: where new connections are made
	failed map[int]time.Time // when a node was last seen dead, by its place in configs
	asked  time.Time         // when a better one than at was last asked whether it is back
}

const (
	// nodeTimeout is how long a node may take to accept a connection and to say that it is
	// of the cluster: one that is frozen accepts and is silent.
	nodeTimeout = 3 * time.Second
	// nodeRest is how long a node that was dead is tried after the others.
	nodeRest = 5 * time.Second
)

// newNodes begins with the first that a process has: process i at host i modulo n.
func newNodes(configs []*mysqldriver.Config, first int) *nodes {
	first %= len(configs)
	return &nodes{configs: slices.Concat(configs[first:], configs[:first]), failed: map[int]time.Time{}}
}

// order is in which order they are tried: where the process is, then the others, then
// those that were dead a moment ago.
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

// left notes that a node is dead, or takes no statements.
func (n *nodes) left(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed[i] = time.Now()
}

// reached notes where the process is.
func (n *nodes) reached(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.failed, i)
	n.at = i
}

// stays reports whether a connection to node i may be used on: the process is still there.
// From time to time it has the nodes before it asked whether they are back.
func (n *nodes) stays(i int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at > 0 && time.Since(n.asked) > nodeRest {
		n.asked = time.Now()
		go n.back(n.at)
	}
	return i == n.at
}

// back leads the process back to the first of the nodes before one that lives.
func (n *nodes) back(from int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(from)*nodeTimeout)
	defer cancel()
	for i := range from {
		if conn, err := n.connect(ctx, i); err == nil {
			_ = conn.Close() // it has said what it was asked
			n.reached(i)
			return
		}
	}
}

// connect connects to one node that takes statements.
func (n *nodes) connect(ctx context.Context, i int) (driver.Conn, error) {
	conn, err := n.within(ctx, i)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		// Nobody has given up but this room: it is the server that is down.
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

// takesStatements: a Galera node that is alone, or is being sent what it has missed,
// answers, and refuses all that reads or writes. SHOW STATUS would say so, too, and may
// hang while nodes are waited for that are dead.
func takesStatements(ctx context.Context, conn driver.Conn) error {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, "SELECT 1", nil)
	if err != nil {
		return err
	}
	return rows.Close()
}

// Connect is driver.Connector.
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

// try connects to one node. A buyer who gives up, or whose lease ends, may do so before a
// silent node has had its time: what came of it is noted all the same, or nobody would ever
// go on to the next.
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
				_ = r.conn.Close() // nobody waits for it
			}
		}()
		return nil, ctx.Err()
	}
}

// Driver is driver.Connector.
func (n *nodes) Driver() driver.Driver { return &mysqldriver.MySQLDriver{} }

// nodeConn is a connection to one node, which is given up when the process is at another,
// or when the node takes no statements any more.
type nodeConn struct {
	sqlconn.Conn
	nodes *nodes
	at    int
	gone  bool
}

const (
	// notReady is ER_UNKNOWN_COM_ERROR, "WSREP has not yet prepared node for application use".
	notReady = 1047
	// refused is ER_LOCK_DEADLOCK: the transaction was rolled back, in favour of another
	// node's, for one.
	refused = 1213
)

// seen looks at the error of a statement. A node that refuses it has done nothing; the
// connection is not used again, and the next one is made to another node.
func (c *nodeConn) seen(err error) error {
	var said *mysqldriver.MySQLError
	if errors.As(err, &said) && said.Number == notReady {
		c.gone = true
		c.nodes.left(c.at)
	}
	return err
}

// BeginTx is driver.ConnBeginTx.
func (c *nodeConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, o)
	if _ = c.seen(err); c.gone {
		return nil, driver.ErrBadConn // a BEGIN has done nothing: database/sql takes another
	}
	if err != nil {
		return nil, err
	}
	return nodeTx{tx, c}, nil
}

// nodeTx gives its connection up when its end has failed: the transaction may be open still,
// and the next BEGIN on it would commit it.
type nodeTx struct {
	driver.Tx
	conn *nodeConn
}

// Commit is driver.Tx.
func (t nodeTx) Commit() error { return t.ended(t.Tx.Commit()) }

// Rollback is driver.Tx.
func (t nodeTx) Rollback() error { return t.ended(t.Tx.Rollback()) }

func (t nodeTx) ended(err error) error {
	var said *mysqldriver.MySQLError
	rolledBack := errors.As(err, &said) && said.Number == refused
	t.conn.gone = t.conn.gone || err != nil && !rolledBack
	return t.conn.seen(err)
}

// ExecContext is driver.ExecerContext.
func (c *nodeConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.ExecContext(ctx, query, args)
	return result, c.seen(err)
}

// QueryContext is driver.QueryerContext.
func (c *nodeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, query, args)
	return rows, c.seen(err)
}

// ResetSession is driver.SessionResetter, called before a connection is used again.
func (c *nodeConn) ResetSession(ctx context.Context) error {
	if c.gone || !c.nodes.stays(c.at) {
		return driver.ErrBadConn
	}
	return c.Conn.ResetSession(ctx)
}

// IsValid is driver.Validator.
func (c *nodeConn) IsValid() bool { return !c.gone && c.Conn.IsValid() }
