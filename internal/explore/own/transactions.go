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

// If statements wait in the server, the committed data and the buyers' knowledge do not determine the
// continuation. It also depends on the locks, writes and views of open transactions, and on the queues
// in which buyers wait. No server reports all of that, but the statements of the transactions and
// their order determine it. So each transaction has a history: a hash of its statements, each with the
// committed data and the histories of all open transactions at that time. Two runs with equal histories
// have the same locks, writes, views and queues.
//
// The reverse does not hold. If two transactions lock different rows, the order of these locks changes
// their histories, although the rows are the same. So the search runs both orders. The states become
// equal again when both transactions have ended.

// transactions holds the open transactions, the transactions with an unanswered statement, and the
// lasting effects of ended ones. Only a run on a database with states and queues uses it.
type transactions struct {
	histories map[*gate.Conn]*history
	inserted  map[string]int    // number of INSERTs by name, including those rolled back, since they have used ids, too
	order     [sha256.Size]byte // hash of all steps
	every     bool              // the state includes order, since the histories do not cover all locks or views
}

// A history is a hash of the statements of one transaction, each with the data and open transactions
// that it met.
type history struct {
	sum     [sha256.Size]byte
	reads   bool // it has read without locking, which fixes its snapshot
	waiting bool // its statement waits
}

func (h *history) add(what ...string) { h.sum = sha256.Sum256(fmt.Appendf(h.sum[:], "%q", what)) }

func newTransactions() transactions {
	return transactions{histories: map[*gate.Conn]*history{}, inserted: map[string]int{}}
}

func (k *knowledge) lined() bool { return k.r.x.Stated() && k.r.x.database.Blocks() }

// all returns the histories, in an order that is the same in every run that reaches this state.
func (t *transactions) all() string {
	var sums []string
	for c, h := range t.histories {
		sums = append(sums, fmt.Sprintf("%d %x %t", c.Buyer(), h.sum, h.waiting))
	}
	slices.Sort(sums)
	return strings.Join(sums, "\n")
}

// state returns the part of a State that describes the transactions.
func (t *transactions) state() string {
	order := ""
	if t.every {
		order = fmt.Sprintf("%x", t.order)
	}
	return fmt.Sprintf("%s\n%v\n%s", t.all(), t.inserted, order)
}

// A meeting is the data and the open transactions that a step finds.
type meeting struct {
	committed string // stock and records
	open      string // histories
	commits   int    // number of commits before the step
}

// String returns the part of the meeting that belongs to a history.
func (m meeting) String() string { return m.committed + "\n" + m.open }

// meets returns the meeting of the next step.
func (k *knowledge) meets(ctx context.Context) (m meeting, _ error) {
	if !k.lined() {
		return m, nil
	}
	if err := k.readBooks(ctx); err != nil {
		return m, err
	}
	return meeting{k.exact(0, k.books.text), k.transactions.all(), k.commits}, nil
}

// transacted records the effect of a step on the open transactions. o is the step's statement, or nil.
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
		if h.waiting && !flying[c] { // the statement was granted its lock, or was given up
			h.add("went on by", step, met.String())
			k.told = true // the buyer receives the result now, at a moment that its memory alone does not determine
		}
		h.waiting = flying[c]
	}
	gone := t.ended(flying)
	if k.commits == met.commits {
		return
	}
	for _, h := range t.histories { // the server may refuse the transaction's writes to rows that others have written
		h.add(append([]string{"beside"}, gone...)...)
	}
}

// did records a statement. A BEGIN is not recorded, since it takes no lock.
func (t *transactions) did(o *gate.Op, step string, met meeting) {
	upper := strings.ToUpper(o.Name)
	beyond := strings.Contains(upper, "_LOCK(") && !strings.Contains(upper, "XACT_LOCK(") // the lock belongs to the connection, not to the transaction
	t.every = t.every || beyond || strings.Contains(upper, "SERIALIZABLE") || strings.HasPrefix(upper, "SET ") || strings.HasPrefix(upper, "LOCK TABLE")
	used := ""
	if strings.Contains(upper, "INSERT ") || strings.Contains(upper, "REPLACE ") {
		used = fmt.Sprint(t.inserted) // the earlier INSERTs determine the id of this one, even while it waits
		if t.inserted[o.Name]++; o.Err != nil {
			t.inserted[o.Name+": refused"]++ // a refused INSERT may have used no id
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

// ended removes the ended transactions and returns their effects.
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
