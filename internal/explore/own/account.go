package own

import (
	"strings"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// An account applies the buyers' reports to the run.
type account struct{ r *run }

func (a account) drain() error {
	for {
		select {
		case e := <-a.r.inbox.reports:
			if err := a.note(e); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (a account) note(e report) error {
	if e.kind == lost {
		return e.err
	}
	b, err := a.r.buyers.find(e.buyer)
	if err != nil {
		return err
	}
	switch e.kind {
	case arrived:
		b.gate = append(b.gate, e.op)
		b.inside = false
	case refused:
		e.op.Blocked = true
		b.flying = without(b.flying, e.op)
		b.gate = append(b.gate, e.op)
	case finished:
		a.finished(b, e.op)
	case paused:
		b.resting = true
	case returned:
		b.over = true
		a.r.rest.severalAtOnce = a.r.rest.severalAtOnce || len(a.r.dogs.armed(b)) > 0 // Buy's context ends now, which may stop the watchdog in its own goroutine
	}
	return nil
}

func (a account) finished(b *buyer, o *gate.Op) {
	r := a.r
	if o.Server != gate.SQL && r.x.gates.PubSub.Count() != r.rest.messages { // the server has sent a message that its receiver has not handled yet
		for _, other := range r.buyers {
			other.inside = false
		}
	}
	b.flying = without(b.flying, o)
	r.knows.remember(b, o)
	if !o.Background && (o.Changed || o.Ends) { // the buyer made progress, so time may pass again later
		r.passing.phase = renewals
	}
	r.named.finished(r.buyers, b, o)
	r.owners.finished(o)
	if o.Server == gate.SQL && (o.Effect == schedule.Writes || o.Ends) {
		b.locks = !o.Ends
	}
	if o.Commits {
		r.knows.commits++
	}
	switch {
	case strings.HasPrefix(o.Name, "WATCH "):
		b.watches[o.Server] = append(b.watches[o.Server], b.changes[o.Server])
	case strings.HasSuffix(o.Name, "; EXEC"):
		delete(b.watches, o.Server)
	}
	for _, other := range r.buyers {
		if other == b {
			continue
		}
		if o.Changed || o.Ends {
			other.changes[o.Server]++
		}
		if o.Ends {
			other.ends++
		}
	}
}

// namedLocks tracks the holders of named locks (GET_LOCK). For some time after the server has granted such a lock, its
// process list still shows that the buyer waits.
type namedLocks struct {
	owed bool // a named lock was released, and a waiting buyer will get it
}

func (n *namedLocks) finished(all buyers, b *buyer, o *gate.Op) {
	switch {
	case o.Asks:
		b.named, b.namedBy = o.Got(), o.Text
		n.owed = n.owed && !b.named
	case o.Gives:
		n.freed(all, b)
	}
}

func (n *namedLocks) freed(all buyers, b *buyer) {
	if !b.named {
		return
	}
	b.named = false
	for _, other := range all {
		for _, o := range other.flying {
			n.owed = n.owed || other != b && o.Asks
		}
	}
}
