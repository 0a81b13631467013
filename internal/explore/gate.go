package explore

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"
)

// An effect is what a command can do to its server, as far as it is known
// before it is sent.
type effect int

const (
	writes effect = iota // or may take a lock
	reads                // changes nothing, and waits for nobody
	local                // the server's state is not touched: BEGIN
)

// An op is one command of one buyer, on its way to a server.
type op struct {
	buyer  int
	server string // "sql", "redis", "redlock-1" ...
	name   string // what it is without its values: the same in every run
	text   string // with its values, for people
	effect effect
	aside  bool // not the buyer's own doing: a renewal, the end of a transaction whose context has ended

	// Set when it was run.
	result  string
	err     error
	note    string
	changed bool // it wrote something, or may have
	ends    bool // it freed locks of the database

	ctx      context.Context // of an SQL command: it is given up when it ends
	conn     *sqlConn        // of an SQL command
	order    chan order      // what the scheduler decides
	timedOut atomic.Bool     // the schedule has ended its wait, see Timeout
	beside   *op             // was let go together with it, see overlap.go
	blocked  bool            // it was refused, see wouldBlock, and waits for the others
	seenEnds int             // how many transactions of others had ended when it was let go
}

type order int

const (
	proceed      order = iota
	die                // its buyer has crashed
	proceedAloud       // and say when it is on its way
	timeOut            // it has waited at the gate for long enough
)

// errCrashed is what a crashed buyer's commands return.
var errCrashed = errors.New("explore: this buyer has crashed")

// gates stops the commands of the run that is under way. Without one they
// pass. It outlives runs, as the connections do.
type gates struct {
	current atomic.Pointer[run]
	scripts *scripts
	pubsub  *pubsub
}

type buyerKey struct{}

// withBuyer says whose the commands under ctx are, where a connection does not.
func withBuyer(ctx context.Context, id int) context.Context {
	return context.WithValue(ctx, buyerKey{}, id)
}

// buyerOf returns owner, or where that is 0 the buyer that ctx names.
func buyerOf(ctx context.Context, owner int) int {
	if owner != 0 {
		return owner
	}
	id, _ := ctx.Value(buyerKey{}).(int)
	return id
}

type asideKey struct{}

// aside marks ctx as that of a renewal.
func aside(ctx context.Context) context.Context {
	return context.WithValue(ctx, asideKey{}, true)
}

func isAside(ctx context.Context) bool { return ctx.Value(asideKey{}) != nil }

// givenUp: the context has ended for which the command was to be run.
func (o *op) givenUp() bool { return o.ctx != nil && o.ctx.Err() != nil }

// pass runs exec when the scheduler says so. exec fills in what o says of the
// result.
func (g *gates) pass(o *op, exec func() error) error {
	r := g.current.Load()
	if o.conn != nil && o.conn.dead.Load() {
		return driver.ErrBadConn
	}
	if r == nil || r.free.Load() {
		return exec()
	}
	if r.dead(o.buyer) {
		return errCrashed
	}
	o.order = make(chan order, 1)
	r.events <- event{arrived, o.buyer, o}
	var waits wouldBlock // what it was refused with
	for {
		order := <-o.order
		switch order {
		case die:
			return errCrashed
		case proceedAloud:
			r.sent <- struct{}{}
		}
		var err error
		switch {
		case o.givenUp(): // as the drivers do: it is not sent any more
			err = o.done(o.ctx.Err(), "")
		case order == timeOut:
			err = o.done(waits.error, "")
		default:
			err = exec()
		}
		if errors.As(err, &waits) && !r.free.Load() {
			r.events <- event{refused, o.buyer, o}
			continue
		}
		o.err = err
		r.events <- event{finished, o.buyer, o}
		return err
	}
}
