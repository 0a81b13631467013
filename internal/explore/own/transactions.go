package own

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// Where statements wait in the server, what can still happen follows from more than what is
// committed and what the buyers know: from what open transactions have locked and written, from
// what they see, and from which buyer waits in which queue. No server tells all of that, but it follows
// from what the transactions have done and what they met. So each has a history: a hash of its
// statements, each with what was committed then and with the histories of all that were open.
// Two runs in which these are the same have the same locks, writes, views and lines.
//
// The reverse does not hold: two transactions that lock different rows have other histories in
// the other order, and both orders are run. They come to one state again when both have ended.

// transactions are those that are open, or whose statement is on its way, and what cannot be
// seen of those that have ended. It is of a run whose database has states and lines.
type transactions struct {
	histories map[*gate.Conn]*history
	inserted  map[string]int    // INSERTs by their name: one that was rolled back has used its ids, too
	order     [sha256.Size]byte // of all steps
	every     bool              // order is part of the state: something is locked or known beyond this account
}

// A history is what one of them has done and met.
type history struct {
	sum     [sha256.Size]byte
	reads   bool // it has read without locking: that begins its view, where a transaction has one
	waiting bool // its statement waits
}

func (h *history) add(what ...string) { h.sum = sha256.Sum256(fmt.Appendf(h.sum[:], "%q", what)) }

func newTransactions() transactions {
	return transactions{histories: map[*gate.Conn]*history{}, inserted: map[string]int{}}
}

// lined: this account is kept.
func (k *knowledge) lined() bool { return k.r.x.Stated() && k.r.x.database.Blocks() }

// all are the histories, in an order that is the same in every run that comes here.
func (t *transactions) all() string {
	var sums []string
	for c, h := range t.histories {
		sums = append(sums, fmt.Sprintf("%d %x %t", c.Buyer(), h.sum, h.waiting))
	}
	slices.Sort(sums)
	return strings.Join(sums, "\n")
}

// state is what the account adds to a state.
func (t *transactions) state() string {
	order := ""
	if t.every {
		order = fmt.Sprintf("%x", t.order)
	}
	return fmt.Sprintf("%s\n%v\n%s", t.all(), t.inserted, order)
}

// A meeting is what a step meets.
type meeting struct {
	committed string // stock and records
	open      string // histories
	commits   int    // before it
}

// String is what of it is part of a history.
func (m meeting) String() string { return m.committed + "\n" + m.open }

// meets is what the next step meets.
func (k *knowledge) meets(ctx context.Context) (m meeting, _ error) {
	if !k.lined() {
		return m, nil
	}
	if err := k.readBooks(ctx); err != nil {
		return m, err
	}
	return meeting{k.exact(0, k.books.text), k.transactions.all(), k.commits}, nil
}

// transacted notes what a step has done to the open transactions: o is its statement, nil for
// what is none.
func (k *knowledge) transacted(o *gate.Op, step string, met meeting) {
	if !k.lined() {
		return
	}
	t := &k.transactions
	t.order = sha256.Sum256(fmt.Appendf(t.order[:], "%q", step))
	if o != nil && o.Server == gate.SQL {
		t.did(o, step, met)
	}
	flying := map[*gate.Conn]bool{}
	for _, b := range k.r.buyers {
		for _, waits := range b.flying {
			flying[waits.Conn()] = waits.Server == gate.SQL
		}
	}
	for c, h := range t.histories {
		if h.waiting && !flying[c] { // it was let through, or given up
			h.add("went on by", step, met.String())
			k.told = true // its buyer hears of it now, and of other things before or after
		}
		h.waiting = flying[c]
	}
	gone := t.ended(flying)
	if k.commits == met.commits {
		return
	}
	for _, h := range t.histories { // it may not write what they have written
		h.add(append([]string{"beside"}, gone...)...)
	}
}

// did notes a statement. A transaction that begins has none of a server's locks yet.
func (t *transactions) did(o *gate.Op, step string, met meeting) {
	upper := strings.ToUpper(o.Name)
	beyond := strings.Contains(upper, "_LOCK(") && !strings.Contains(upper, "XACT_LOCK(") // its connection has it, not its transaction
	t.every = t.every || beyond || strings.Contains(upper, "SERIALIZABLE") || strings.HasPrefix(upper, "SET ") || strings.HasPrefix(upper, "LOCK TABLE")
	used := ""
	if strings.Contains(upper, "INSERT ") || strings.Contains(upper, "REPLACE ") {
		used = fmt.Sprint(t.inserted) // before it: its id follows from them, also where it waits
		if t.inserted[o.Name]++; o.Err != nil {
			t.inserted[o.Name+": refused"]++ // and may have used none
		}
	}
	if o.Effect == schedule.Local || o.Controls {
		return
	}
	h := t.histories[o.Conn()]
	if h == nil {
		h = &history{}
		t.histories[o.Conn()] = h
	}
	switch {
	case o.Effect == schedule.Writes:
		h.add(step, met.String(), used)
	case !h.reads:
		h.reads = true
		h.add("reads", met.committed)
	}
}

// ended forgets those that have ended, and returns what they had done.
func (t *transactions) ended(flying map[*gate.Conn]bool) (histories []string) {
	maps.DeleteFunc(t.histories, func(c *gate.Conn, h *history) bool {
		if flying[c] || c.InTransaction() && c.Alive() {
			return false
		}
		histories = append(histories, fmt.Sprintf("%d %x", c.Buyer(), h.sum))
		return true
	})
	slices.Sort(histories)
	return histories
}
