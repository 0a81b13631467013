package gate

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// A Connector makes connections whose commands wait at the gate. A strategy uses the real driver; the gate controls
// only when its commands are sent.
type Connector struct {
	driver.Connector
	gates    *Gates
	database serverstate.Database
	owner    int // the buyer; 0: the context identifies it

	mu    sync.Mutex
	conns map[*Conn]struct{}
}

// NewConnector makes the connector of one buyer. With owner 0, it serves all buyers, and the context
// identifies them. Set the embedded Connector before use.
func (g *Gates) NewConnector(d serverstate.Database, owner int) *Connector {
	return &Connector{gates: g, database: d, owner: owner, conns: map[*Conn]struct{}{}}
}

// Connect implements driver.Connector.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.patiently(ctx)
	if err != nil {
		return nil, err
	}
	conn := &Conn{Conn: inner, from: c}
	conn.buyer.Store(int64(c.owner))
	if conn.id, err = c.database.Connected(ctx, inner); err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = struct{}{}
	return conn, nil
}

// patiently retries a connection attempt after a time-out. Connecting is not a step of the schedule, so its
// duration must not matter.
func (c *Connector) patiently(ctx context.Context) (conn driver.Conn, err error) {
	for deadline := time.Now().Add(schedule.HangTimeout); ; {
		conn, err = c.Connector.Connect(ctx)
		var timeout interface{ Timeout() bool }
		if !errors.As(err, &timeout) || !timeout.Timeout() || ctx.Err() != nil || time.Now().After(deadline) {
			return conn, err
		}
	}
}

// Open returns the open connections of one buyer.
func (c *Connector) Open(buyer int) (conns []*Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		if conn.Buyer() == buyer {
			conns = append(conns, conn)
		}
	}
	return conns
}
