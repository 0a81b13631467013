package own

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A leftover finds and ends the locks and transactions that buyers left in the database although they had their
// answers.
type leftover struct {
	r    *run
	what string // description for the user; "" if nothing was left
}

// look inspects the buyers' idle connections. All calls of Buy must have returned.
func (l *leftover) look() {
	var whys []string
	for _, b := range l.r.buyers {
		if held := b.holds(); len(held) > 0 {
			whys = append(whys, fmt.Sprintf("buyer %d is answered, and its idle connection still has %s", b.id, strings.Join(held, ", ")))
		}
	}
	l.what = strings.Join(whys, "; ")
}

// holds lists the transactions and the named lock on the buyer's idle connections. It looks several times, since
// database/sql may still be rolling back a transaction whose context has ended.
func (b *buyer) holds() (held []string) {
	if b.crashed {
		return nil
	}
	for tries := 0; tries < 40; tries++ {
		held = held[:0]
		for _, c := range b.seat.connector.Open(b.id) {
			if what := c.Holds(); what != "" && c.Alive() {
				held = append(held, what)
			}
		}
		if len(held) == 0 {
			break
		}
		runtime.Gosched()
		time.Sleep(lookEvery)
	}
	if b.named {
		held = append(held, "a named lock ("+b.namedBy+")")
	}
	slices.Sort(held)
	return held
}

// clean replaces the buyers' connections if a lock or a transaction was left on them.
func (l *leftover) clean(ctx context.Context) error {
	if l.what == "" {
		return nil
	}
	return l.reseat(ctx)
}

func (l *leftover) reseat(ctx context.Context) (err error) {
	x := l.r.x
	ctx = context.WithoutCancel(ctx)
	for _, b := range l.r.buyers {
		err = errors.Join(err, x.kill(ctx, b.id))
	}
	for i, s := range x.seats {
		owner := i + 1
		if x.spec.Shared {
			owner = 0
		}
		fresh, bad := x.open(owner)
		if err = errors.Join(err, bad); err != nil {
			return err
		}
		_ = s.close() // an error only says that the server has already ended the connections
		x.seats[i] = fresh
	}
	return err
}
