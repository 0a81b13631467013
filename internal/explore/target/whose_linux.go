package target

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/naming"
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

// A way is a hash of a buyer's request, its commands and their answers, in this order.
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

// isTold marks the answer to the buyer in its way.
const isTold = "\x00told"

// A lesson is one observation: a command that came next on a way, and how often it had come there by then.
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

// A trace holds the commands of one buyer, by which an attribution tells it from others.
type trace struct {
	way       way
	sentSince map[string]int // its commands since its way changed
	noted     bool           // its answer is part of its way
}

// An attribution infers which buyer has sent a command. It belongs to one run.
type attribution struct {
	now    func() gates.Commands // see gates.Table
	buyers *client.Buyers
	names  *naming.Names
	habits *habits

	traces   map[int]*trace       // by buyer
	open     map[*wire.Conn][]int // by connection: the buyers that have used it in its open transaction
	lessons  []lesson             // from this run, see habits
	parallel bool                 // as in habits, in this run
	late     bool                 // as in habits, in this run
	before   int                  // Buyers.Handed at the last release of a command or request
	inferred bool                 // a command could have been another buyer's
	guessed  bool                 // two buyers could not be told apart
}

func newAttribution(now func() gates.Commands, b *client.Buyers, n *naming.Names, h *habits) *attribution {
	a := &attribution{now: now, buyers: b, names: n, habits: h, traces: map[int]*trace{}, open: map[*wire.Conn][]int{}}
	for _, one := range b.All {
		w := wayOf(one.Request)
		if one.Request.IsPersonal() {
			w = w.after("buyer", strconv.Itoa(one.ID))
		}
		a.traces[one.ID] = &trace{way: w, sentSince: map[string]int{}}
	}
	return a
}

// of returns the trace of a buyer.
func (a *attribution) of(b *client.Buyer) *trace {
	if t := a.traces[b.ID]; t != nil {
		return t
	}
	return &trace{sentSince: map[string]int{}}
}

// released records that a move is about to be made. Its buyer receives nothing before the answer.
func (a *attribution) released() { a.before = a.buyers.Handed }

// senders returns the buyers that could have sent the next command.
func (a *attribution) senders() (all []*client.Buyer) {
	h, now := a.habits, a.buyers.Of(a.buyers.Current)
	inside := a.buyers.Inside(a.now())
	parallel, late := h.parallel || a.parallel, h.late || a.late
	for _, b := range a.buyers.All {
		// A buyer whose command is on its way sends nothing before it has received something.
		if a.buyers.IsWaiting(b) && (parallel || slices.Contains(inside, b.ID) || b == now && b.Since > a.before) {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		all = slices.DeleteFunc(slices.Clone(a.buyers.All), func(b *client.Buyer) bool { return !a.buyers.IsWaiting(b) })
	}
	if now.ID != 0 && !a.buyers.IsWaiting(now) && (late || len(all) == 0) {
		all = append(all, now)
	}
	return all
}

// whose returns the buyer that sent a command after the last delivery.
func (a *attribution) whose(o *gates.Op) error {
	name := a.names.Usual(a.names.Of(o.Text))
	all := a.senders()
	would, may := a.expected(all, name)
	owner := &client.Buyer{}
	if users := a.open[o.Conn()]; len(users) == 1 {
		owner = a.buyers.Of(users[0])
	}
	if owner.ID != 0 && (slices.Contains(all, owner) || len(would)+len(may) == 0) {
		a.owns(o, owner.ID, name)
		return nil
	}
	if len(all) == 1 {
		a.owns(o, all[0].ID, name)
		return nil
	}
	a.inferred = true
	if len(would) == 0 {
		would, may = may, nil
	}
	other := func(b *client.Buyer) bool {
		return a.of(b).way != a.of(would[0]).way || !maps.Equal(a.of(b).sentSince, a.of(would[0]).sentSince)
	}
	if len(would) == 0 || len(may) > 0 || slices.ContainsFunc(would, other) {
		var ids []int
		for _, b := range all {
			ids = append(ids, b.ID)
		}
		return naming.Void(notKnown, "%q could be of buyer %s", o.Text, naming.List(ids, "or"))
	}
	// If several buyers have the same way, the one that has waited longest is assumed to be unblocked
	// first. The answers show if it was another, see answered.
	a.guessed = a.guessed || len(would) > 1
	first := slices.MinFunc(would, func(x, y *client.Buyer) int { return x.Since - y.Since })
	a.owns(o, first.ID, name)
	return nil
}

// expected returns the buyers that are known to send such a command next, and those of which nothing is known.
func (a *attribution) expected(all []*client.Buyer, name string) (would, may []*client.Buyer) {
	for _, b := range all {
		switch next := a.habits.next[a.of(b).way]; {
		case next[name] > a.of(b).sentSince[name]:
			would = append(would, b)
		case next == nil:
			may = append(may, b)
		}
	}
	return would, may
}

const notKnown = "the buyer of a command is unknown"

// owns records the buyer of a command and adds the command to that buyer's way.
func (a *attribution) owns(o *gates.Op, id int, name string) {
	b := a.buyers.Of(id)
	o.Buyer = id
	a.parallel = a.parallel || a.waits(b, o)
	a.late = a.late || a.buyers.Told(b)
	t := a.of(b)
	t.sentSince[name]++
	a.lessons = append(a.lessons, lesson{t.way, name, t.sentSince[name]})
}

// waits reports whether a command of the buyer other than o has no answer yet.
func (a *attribution) waits(b *client.Buyer, o *gates.Op) bool {
	now := a.now()
	return slices.ContainsFunc(slices.Concat(now.Held, now.Flying, now.Uncommitted), func(other *gates.Op) bool { return other != o && other.Buyer == b.ID })
}

// answered records the buyers that were answered since the last look. If one is answered in the middle
// of its way, the attribution was wrong: one of its commands was counted for another buyer.
func (a *attribution) answered() error {
	h := a.habits
	for _, b := range a.buyers.All {
		t := a.of(b)
		if t.noted || !a.buyers.Told(b) {
			continue
		}
		t.noted = true
		next := h.next[t.way]
		certain := b.ID == a.buyers.Current || next == nil && !a.guessed
		waits := a.inferred && !h.parallel && !h.late && a.waits(b, nil)
		if waits || !certain && next[isTold] == 0 {
			return naming.Void(notKnown, "buyer %d is answered, and would have sent something yet", b.ID)
		}
		if certain {
			a.lessons = append(a.lessons, lesson{t.way, isTold, 1})
		}
	}
	return nil
}

// continues records that a buyer is about to receive the answer to its command.
func (a *attribution) continues(o *gates.Op, shown string) {
	t := a.of(a.buyers.Of(o.Buyer))
	t.way = t.way.after(a.names.Usual(o.Name), a.names.Usual(shown))
	clear(t.sentSince)
}

// keeps reports whether the buyer has used an open transaction on a connection other than this one.
func (a *attribution) keeps(b *client.Buyer, other *wire.Conn) bool {
	for c, users := range a.open {
		if c != other && slices.Contains(users, b.ID) {
			return true
		}
	}
	return false
}

// transaction records the buyers of a connection of the shared program while a transaction is open. There are
// several if a pool lends the connection meanwhile.
func (a *attribution) transaction(o *gates.Op) {
	c := o.Conn()
	if o.Ends || !o.Answer.Open {
		delete(a.open, c)
	}
	if o.Answer.Open && !slices.Contains(a.open[c], o.Buyer) {
		a.open[c] = append(a.open[c], o.Buyer)
	}
}
