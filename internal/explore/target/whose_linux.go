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

// If all buyers share one instance, no connection identifies the buyer of a command. But the program
// receives only one message at a time. So the next command belongs to the buyer that received it, or to
// a buyer that was unblocked: one that waits inside the program for a mutex or a pooled connection. The
// explorer infers the buyer from the next command of each. It assumes that the same request with the
// same answers continues with the same command. It learns that command whenever the buyer is certain,
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

// habits records, for each way, the commands that came next from a certain buyer.
type habits struct {
	next     map[way]map[string]bool
	parallel bool // a buyer may send while another of its commands is on the way
	late     bool // a buyer may send after it was answered
}

// isTold stands for the answer on a buyer's way.
const isTold = "\x00told"

// A lesson is the command that came next on a way. It is learned when its run has ended and was not
// void.
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

// appeared matches a name by order of appearance. Two runs give the same value different names.
var appeared = regexp.MustCompile(named)

// An attribution infers which buyer has sent a command.
type attribution struct {
	r       *run
	open    map[*wire.Conn]int // by connection: the buyer with an open transaction
	lessons []lesson           // from this run, see habits
}

// usual returns a command or an answer without the values that differ between runs.
func (a *attribution) usual(text string) string {
	return appeared.ReplaceAllString(a.r.names.shown(text), "<>")
}

// whose returns the buyer that sent a command after the last delivery. It is called with floor.mu held.
func (a *attribution) whose(o *op) error {
	h := &a.r.x.habits
	name := a.usual(a.r.names.of(o.Text))
	if owner := a.open[o.Conn()]; owner != 0 {
		a.owns(o, owner, name)
		return nil
	}
	var all []*buyer // buyers that could have sent it
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
	// If several buyers have the same way, the one that has waited longest is assumed to be unblocked
	// first. The answers show if it was another, see answered.
	first := slices.MinFunc(would, func(x, y *buyer) int { return x.since - y.since })
	a.owns(o, first.id, name)
	return nil
}

const notKnown = "the buyer of a command is unknown"

// owns records the buyer of a command and adds the command to that buyer's way.
func (a *attribution) owns(o *op, id int, name string) {
	f, h, b := a.r.x.floor, &a.r.x.habits, a.r.buyer(id)
	o.buyer = id
	a.lessons = append(a.lessons, lesson{b.way, name})
	theirs := func(other *op) bool { return other != o && b.sent(other) }
	h.parallel = h.parallel || slices.ContainsFunc(f.held, theirs) || slices.ContainsFunc(f.flying, theirs)
	h.late = h.late || b.told
}

// answered records the buyers that were answered since the last look. If one is answered in the middle
// of its way, the attribution was wrong: one of its commands was counted for another buyer. It is
// called with floor.mu held.
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

// transaction records the buyer of a connection of the shared program while a transaction is open.
func (a *attribution) transaction(o *op) {
	switch {
	case o.Ends:
		delete(a.open, o.Conn())
	case o.Effect == schedule.Local:
		a.open[o.Conn()] = o.buyer
	}
}
