package target

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// If all buyers share one instance, no connection identifies the buyer of a command. But the program
// receives only one message at a time. So the next command belongs to the buyer that received it, or to
// a buyer that was unblocked: one that waits inside the program for a mutex, a pooled connection or a
// timer. The explorer infers the buyer from the next command of each. It assumes that the same request
// with the same answers continues with the same commands. It learns them whenever the buyer is certain,
// first from each buyer alone. If it cannot infer the buyer, the run is void.
//
// The steps of a shared instance commute with nothing, so all schedules are run, whichever buyer sends
// a step. A wrong inference would put a step into the wrong column, and could count a retry for the
// wrong buyer, see polls.

// A way identifies a buyer's request, its commands and their answers, in this order.
type way [sha256.Size]byte

func wayOf(r app.Request) way {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []any{r.Method, r.URL, r.Header, r.Body}))
}

func (w way) after(command, answer string) way {
	return sha256.Sum256(fmt.Appendf(w[:], "%q %q", command, answer))
}

// habits records, for each way, the commands that came next from a certain buyer, and how often each
// came before the next answer.
type habits struct {
	next     map[way]map[string]int
	parallel bool // a buyer may send while another of its commands is on the way
	late     bool // a buyer may send after it was answered
}

// isTold stands for the answer on a buyer's way.
const isTold = "\x00told"

// A lesson is a command that came next on a way, and how often it had come there by then.
type lesson struct {
	way   way
	next  string
	times int
}

// learn learns from a run that has ended and was not void.
func (h *habits) learn(a *attribution) {
	if h.next == nil {
		h.next = map[way]map[string]int{}
	}
	for _, l := range a.lessons {
		if h.next[l.way] == nil {
			h.next[l.way] = map[string]int{}
		}
		h.next[l.way][l.next] = max(h.next[l.way][l.next], l.times)
	}
	h.parallel, h.late = h.parallel || a.parallel, h.late || a.late
}

// An attribution infers which buyer has sent a command.
type attribution struct {
	r        *run
	open     map[*wire.Conn]int // by connection: the buyer with an open transaction
	lessons  []lesson           // from this run, see habits
	parallel bool               // as in habits, in this run
	late     bool               // as in habits, in this run
	before   int                // run.handed at the last release of a command or request
	inferred bool               // a command could have been another buyer's
	guessed  bool               // two buyers could not be told apart
}

// released records that a move is about to be made. Its buyer receives nothing before the answer.
func (a *attribution) released() { a.before = a.r.handed }

// senders returns the buyers that could have sent the next command.
func (a *attribution) senders() (all []*buyer) {
	h, now := &a.r.x.habits, a.r.buyer(a.r.current)
	inside := a.r.rest.inside()
	parallel, late := h.parallel || a.parallel, h.late || a.late
	for _, b := range a.r.buyers {
		// A buyer whose command is on its way sends nothing before it has received something.
		if b.alive && (parallel || slices.Contains(inside, b.id) || b == now && b.since > a.before) {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		all = slices.DeleteFunc(slices.Clone(a.r.buyers), func(b *buyer) bool { return !b.alive })
	}
	if now.id != 0 && !now.alive && (late || len(all) == 0) {
		all = append(all, now)
	}
	return all
}

// whose returns the buyer that sent a command after the last delivery. It is called with gateTable.mu held.
func (a *attribution) whose(o *op) error {
	h := &a.r.x.habits
	name := a.r.names.Usual(a.r.names.Of(o.Text))
	if owner := a.open[o.Conn()]; owner != 0 {
		a.owns(o, owner, name)
		return nil
	}
	all := a.senders()
	if len(all) == 1 {
		a.owns(o, all[0].id, name)
		return nil
	}
	a.inferred = true
	var would, may []*buyer
	for _, b := range all {
		switch next := h.next[b.way]; {
		case next[name] > b.sentSince[name]:
			would = append(would, b)
		case next == nil:
			may = append(may, b)
		}
	}
	if len(would) == 0 {
		would, may = may, nil
	}
	other := func(b *buyer) bool { return b.way != would[0].way || !maps.Equal(b.sentSince, would[0].sentSince) }
	if len(would) == 0 || len(may) > 0 || slices.ContainsFunc(would, other) {
		var ids []int
		for _, b := range all {
			ids = append(ids, b.id)
		}
		return voided(notKnown, "%q could be of buyer %s", o.Text, list(ids, "or"))
	}
	// If several buyers have the same way, the one that has waited longest is assumed to be unblocked
	// first. The answers show if it was another, see answered.
	a.guessed = a.guessed || len(would) > 1
	first := slices.MinFunc(would, func(x, y *buyer) int { return x.since - y.since })
	a.owns(o, first.id, name)
	return nil
}

const notKnown = "the buyer of a command is unknown"

// owns records the buyer of a command and adds the command to that buyer's way.
func (a *attribution) owns(o *op, id int, name string) {
	b := a.r.buyer(id)
	o.buyer = id
	a.parallel = a.parallel || a.waits(b, o)
	a.late = a.late || b.told
	b.sentSince[name]++
	a.lessons = append(a.lessons, lesson{b.way, name, b.sentSince[name]})
}

// waits reports whether a command of the buyer other than o has no answer yet.
func (a *attribution) waits(b *buyer, o *op) bool {
	f := a.r.x.gateTable
	return slices.ContainsFunc(slices.Concat(f.held, f.flying, f.uncommitted), func(other *op) bool { return other != o && b.sent(other) })
}

// answered records the buyers that were answered since the last look. If one is answered in the middle
// of its way, the attribution was wrong: one of its commands was counted for another buyer. It is
// called with gateTable.mu held.
func (a *attribution) answered() error {
	h := &a.r.x.habits
	for _, b := range a.r.buyers {
		if !b.told || b.noted {
			continue
		}
		b.noted = true
		next := h.next[b.way]
		certain := b.id == a.r.current || next == nil && !a.guessed
		waits := a.inferred && !h.parallel && !h.late && a.waits(b, nil)
		if waits || !certain && next[isTold] == 0 {
			return voided(notKnown, "buyer %d is answered, and would have sent something yet", b.id)
		}
		if certain {
			a.lessons = append(a.lessons, lesson{b.way, isTold, 1})
		}
	}
	return nil
}

// transaction records the buyer of a connection of the shared program while a transaction is open.
func (a *attribution) transaction(o *op) {
	switch {
	case o.Ends:
		delete(a.open, o.Conn())
	case o.Effect == schedule.Local:
		a.open[o.Conn()] = o.buyer
	}
}
