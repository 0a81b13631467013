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

// If all buyers share one instance, no connection identifies the buyer of a command. But the explorer delivers only one
// message at a time. So the next command belongs to the buyer that received the message, or to a buyer that waited
// inside the program, for example for a mutex or a pooled connection. The explorer infers which: it assumes that the
// same commands follow after the same request and the same answers. It learns them whenever the buyer is certain, first
// from each buyer alone. If it cannot infer the buyer, the run is void: discarded and repeated.
//
// A wrong inference loses no schedule, since the search assumes that no two steps of a shared instance commute. It only
// shows a step in another buyer's column, or counts a retry for the wrong buyer (package retry).

// A history is a hash of a buyer's request, its commands and their answers, in this order.
type history [sha256.Size]byte

func historyOf(r app.Request) history {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []any{r.Method, r.URL, r.Header, r.Body}))
}

func (w history) after(command, answer string) history {
	return sha256.Sum256(fmt.Appendf(w[:], "%q %q", command, answer))
}

// habits records which commands followed each history, and how often each came before the next answer. It learns only
// from commands whose buyer is certain.
type habits struct {
	next     map[history]map[string]int
	parallel bool // a buyer may send a command while its previous one has no answer
	late     bool // a buyer may send a command after the answer to its request
}

// isTold is an entry in habits.next: after this history, the buyer's request is answered.
const isTold = "\x00told"

// An observation is a command that followed a history, and how often it had come since the last answer.
type observation struct {
	history history
	next    string
	times   int
}

// learn adds the observations of a run that has ended and was not void.
func (h *habits) learn(a *attribution) {
	if h.next == nil {
		h.next = map[history]map[string]int{}
	}
	for _, l := range a.observations {
		if h.next[l.history] == nil {
			h.next[l.history] = map[string]int{}
		}
		h.next[l.history][l.next] = max(h.next[l.history][l.next], l.times)
	}
	h.parallel, h.late = h.parallel || a.parallel, h.late || a.late
}

// A trace is the recent history of one buyer. By it, an attribution tells the buyers apart.
type trace struct {
	history   history
	sentSince map[string]int // by command: how often it came since the last answer
	noted     bool           // the buyer's answer was processed
}

// An attribution infers which buyer sent each command. It belongs to one run.
type attribution struct {
	now    func() gates.Commands // see gates.Table
	buyers *client.Buyers
	names  *naming.Names
	habits *habits

	traces       map[int]*trace       // by buyer
	open         map[*wire.Conn][]int // by connection with an open transaction: the buyers that have used it
	observations []observation        // for habits.learn
	parallel     bool                 // as in habits, but only in this run
	late         bool                 // as in habits, but only in this run
	before       int                  // Buyers.Handed when the last command or request was released
	inferred     bool                 // for some command, more than one buyer was possible
	guessed      bool                 // for some command, two buyers were equally likely
}

func newAttribution(now func() gates.Commands, b *client.Buyers, n *naming.Names, h *habits) *attribution {
	a := &attribution{now: now, buyers: b, names: n, habits: h, traces: map[int]*trace{}, open: map[*wire.Conn][]int{}}
	for _, one := range b.All {
		w := historyOf(one.Request)
		if one.Request.IsPersonal() {
			w = w.after("buyer", strconv.Itoa(one.ID))
		}
		a.traces[one.ID] = &trace{history: w, sentSince: map[string]int{}}
	}
	return a
}

func (a *attribution) of(b *client.Buyer) *trace {
	if t := a.traces[b.ID]; t != nil {
		return t
	}
	return &trace{sentSince: map[string]int{}}
}

// released is called before a move. The move's buyer then sends nothing more until it receives a message.
func (a *attribution) released() { a.before = a.buyers.Handed }

// senders returns the buyers that may have sent the next command.
func (a *attribution) senders() (all []*client.Buyer) {
	h, now := a.habits, a.buyers.Of(a.buyers.Current)
	inside := a.buyers.Inside(a.now())
	parallel, late := h.parallel || a.parallel, h.late || a.late
	for _, b := range a.buyers.All {
		// A buyer whose command has no answer yet sends nothing.
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

// whose finds the buyer of command o. If it cannot, the error is a schedule.Void.
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
		return a.of(b).history != a.of(would[0]).history || !maps.Equal(a.of(b).sentSince, a.of(would[0]).sentSince)
	}
	if len(would) == 0 || len(may) > 0 || slices.ContainsFunc(would, other) {
		var ids []int
		for _, b := range all {
			ids = append(ids, b.ID)
		}
		return naming.Void(notKnown, "%q could be of buyer %s", o.Text, naming.List(ids, "or"))
	}
	// Buyers with the same history are equally likely. Then whose assumes that the buyer that has waited longest was
	// unblocked first. If that is wrong, a later answer shows it, see answered.
	a.guessed = a.guessed || len(would) > 1
	first := slices.MinFunc(would, func(x, y *client.Buyer) int { return x.Since - y.Since })
	a.owns(o, first.ID, name)
	return nil
}

// expected returns the buyers that are known to send this command next, and the buyers with an unknown next command.
func (a *attribution) expected(all []*client.Buyer, name string) (would, may []*client.Buyer) {
	for _, b := range all {
		switch next := a.habits.next[a.of(b).history]; {
		case next[name] > a.of(b).sentSince[name]:
			would = append(would, b)
		case next == nil:
			may = append(may, b)
		}
	}
	return would, may
}

const notKnown = "the buyer of a command is unknown"

// owns records the buyer of a command. It also notes the command as an observation about the buyer's history.
func (a *attribution) owns(o *gates.Op, id int, name string) {
	b := a.buyers.Of(id)
	o.Buyer = id
	a.parallel = a.parallel || a.waits(b, o)
	a.late = a.late || a.buyers.Told(b)
	t := a.of(b)
	t.sentSince[name]++
	a.observations = append(a.observations, observation{t.history, name, t.sentSince[name]})
}

// waits reports whether the buyer has a command without an answer, other than o.
func (a *attribution) waits(b *client.Buyer, o *gates.Op) bool {
	now := a.now()
	return slices.ContainsFunc(slices.Concat(now.Held, now.Flying, now.Uncommitted), func(other *gates.Op) bool { return other != o && other.Buyer == b.ID })
}

// answered handles the buyers that were answered since the last call. If such a buyer should have sent more commands,
// it returns an error, since one of them was probably counted for another buyer.
func (a *attribution) answered() error {
	h := a.habits
	for _, b := range a.buyers.All {
		t := a.of(b)
		if t.noted || !a.buyers.Told(b) {
			continue
		}
		t.noted = true
		next := h.next[t.history]
		certain := b.ID == a.buyers.Current || next == nil && !a.guessed
		waits := a.inferred && !h.parallel && !h.late && a.waits(b, nil)
		if waits || !certain && next[isTold] == 0 {
			return naming.Void(notKnown, "buyer %d is answered, and would have sent something yet", b.ID)
		}
		if certain {
			a.observations = append(a.observations, observation{t.history, isTold, 1})
		}
	}
	return nil
}

// continues adds an answered command to its buyer's history. The buyer is about to receive the answer.
func (a *attribution) continues(o *gates.Op, shown string) {
	t := a.of(a.buyers.Of(o.Buyer))
	t.history = t.history.after(a.names.Usual(o.Name), a.names.Usual(shown))
	clear(t.sentSince)
}

// keeps reports whether the buyer has used a transaction that is open on another connection.
func (a *attribution) keeps(b *client.Buyer, other *wire.Conn) bool {
	for c, users := range a.open {
		if c != other && slices.Contains(users, b.ID) {
			return true
		}
	}
	return false
}

// transaction records which buyers use a connection with an open transaction. A pool may give such a connection to
// several buyers.
func (a *attribution) transaction(o *gates.Op) {
	c := o.Conn()
	if o.Ends || !o.Answer.Open {
		delete(a.open, c)
	}
	if o.Answer.Open && !slices.Contains(a.open[c], o.Buyer) {
		a.open[c] = append(a.open[c], o.Buyer)
	}
}
