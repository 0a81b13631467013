package target

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Where all buyers share one instance, no connection identifies the buyer of a command. Only one thing
// at a time is handed to the program, so what comes next is of the buyer to whom it was handed,
// or of one that this buyer has freed: it waits inside the program for a mutex, or for a
// connection of the pool. Which of them it is follows from what each would send next: the same
// request that got the same answers goes on with the same command, as everything here
// presumes. That is learned where there is no doubt, first of each buyer alone. Where it does
// not follow the run is void.
//
// The steps of an instance that is shared commute with nothing, so all orders are run whosoever
// they are. A wrong answer would put a step into the wrong column, and could have a try be
// taken for another's, see polls.

// A way is what a buyer has asked and sent and was answered, in this order.
type way [sha256.Size]byte

func wayOf(r app.Request) way {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []any{r.Method, r.URL, r.Header, r.Body}))
}

func (w way) after(command, answer string) way {
	return sha256.Sum256(fmt.Appendf(w[:], "%q %q", command, answer))
}

// habits are what was seen to come next, on each way, where it was certain.
type habits struct {
	next     map[way]map[string]bool
	parallel bool // a buyer may send while another command of its own is out
	late     bool // a buyer may send when it is answered already
}

// isTold stands for the answer on a buyer's way.
const isTold = "\x00told"

// A lesson is what came next on a way. It is learned when its run has ended, and was not void.
type lesson struct {
	way  way
	next string
}

func (h *habits) learn(all []lesson) {
	if h.next == nil {
		h.next = map[way]map[string]bool{}
	}
	for _, l := range all {
		if h.next[l.way] == nil {
			h.next[l.way] = map[string]bool{}
		}
		h.next[l.way][l.next] = true
	}
}

// by order of appearance: two runs call the same value by other names.
var appeared = regexp.MustCompile(`<\d+>`)

// An attribution knows which buyer has sent a command.
type attribution struct {
	r       *run
	open    map[*wire.Conn]int // by connection: the buyer with an open transaction
	lessons []lesson           // of this run, see habits
}

// usual is a command, or an answer, without what differs from run to run.
func (a *attribution) usual(text string) string {
	return appeared.ReplaceAllString(a.r.names.shown(text), "<>")
}

// whose says which buyer has sent a command that came after the last thing was handed over.
// It is called with floor.mu held.
func (a *attribution) whose(o *op) error {
	h := &a.r.x.habits
	name := a.usual(a.r.names.of(o.Text))
	if owner := a.open[o.Conn()]; owner != 0 {
		a.owns(o, owner, name)
		return nil
	}
	var all []*buyer // that could have sent it
	others := a.r.rest.inside()
	if h.parallel {
		others = nil
		for _, b := range a.r.buyers {
			if b.alive {
				others = append(others, b.id)
			}
		}
	}
	for _, id := range others {
		all = append(all, a.r.buyer(id))
	}
	now := a.r.buyer(a.r.current)
	switch {
	case now.id == 0 || slices.Contains(all, now):
	case now.alive, h.late, len(all) == 0:
		all = append(all, now)
	}
	if len(all) == 1 {
		a.owns(o, all[0].id, name)
		return nil
	}
	var would, may []*buyer
	for _, b := range all {
		switch next := h.next[b.way]; {
		case next[name]:
			would = append(would, b)
		case next == nil:
			may = append(may, b)
		}
	}
	if len(would) == 0 {
		would, may = may, nil
	}
	other := func(b *buyer) bool { return b.way != would[0].way }
	if len(would) == 0 || len(may) > 0 || slices.ContainsFunc(would, other) {
		return voided(notKnown, "%q could be of buyer %s", o.Text, list(others, "or"))
	}
	// Of several that have come the same way the one that has waited longest is freed first. The
	// answers show if it was another, see answered.
	first := slices.MinFunc(would, func(x, y *buyer) int { return x.since - y.since })
	a.owns(o, first.id, name)
	return nil
}

const notKnown = "whose command it is cannot be said"

// owns notes the buyer of a command, and that it came on that buyer's way.
func (a *attribution) owns(o *op, id int, name string) {
	f, h, b := a.r.x.floor, &a.r.x.habits, a.r.buyer(id)
	o.buyer = id
	a.lessons = append(a.lessons, lesson{b.way, name})
	theirs := func(other *op) bool { return other != o && b.sent(other) }
	h.parallel = h.parallel || slices.ContainsFunc(f.held, theirs) || slices.ContainsFunc(f.flying, theirs)
	h.late = h.late || b.told
}

// answered notes the buyers that were answered since the last look. One that is answered in the
// middle of its way has come another way: a command of it was attributed to another. It is called with floor.mu held.
func (a *attribution) answered() error {
	h := &a.r.x.habits
	for _, b := range a.r.buyers {
		if !b.told || b.noted {
			continue
		}
		b.noted = true
		switch next := h.next[b.way]; {
		case next == nil || b.id == a.r.current:
			a.lessons = append(a.lessons, lesson{b.way, isTold})
		case !next[isTold]:
			return voided(notKnown, "buyer %d is answered, and would have sent something yet", b.id)
		}
	}
	return nil
}

// transaction notes the buyer of a connection of the shared program while a transaction is open.
func (a *attribution) transaction(o *op) {
	switch {
	case o.Ends:
		delete(a.open, o.Conn())
	case o.Effect == schedule.Local:
		a.open[o.Conn()] = o.buyer
	}
}
