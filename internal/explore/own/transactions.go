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

// To merge equal states, the search must recognize them. If statements wait in the server, the committed data and the
// data that buyers have read do not determine the rest. The locks, writes and views of open transactions and the queues
// matter, too. No server reports all of that, but the transactions' statements and their order determine it. So each
// transaction has a history: a hash of its statements. Each statement is hashed with the committed data and the
// histories of all open transactions at that time. Two runs with equal histories have the same locks, writes, views and
// queues.
//
// The reverse does not hold. If two transactions lock different rows, the order of these locks changes their histories,
// although the locks are the same. So the search runs both orders. When both transactions have ended, the states are
// equal again.

// transactions holds the open transactions, those with an unanswered statement, and the lasting effects of ended ones.
// It is used only on a database where statements wait and states can be computed.
type transactions struct {
	histories map[*gate.Conn]*history
	inserted  map[string]int    // number of INSERTs by name, including those rolled back, because they use up ids
	order     [sha256.Size]byte // hash of all steps so far
	every     bool              // include order in the state, since the histories do not cover all locks or views
}

// A history is a hash of the statements of one transaction. Each statement is hashed with the data and the open
// transactions that it met.
type history struct {
	sum     [sha256.Size]byte
	reads   bool // it has read without a lock, so its snapshot is fixed
	waiting bool // its statement waits
}

func (h *history) add(what ...string) { h.sum = sha256.Sum256(fmt.Appendf(h.sum[:], "%q", what)) }

func newTransactions() transactions {
	return transactions{histories: map[*gate.Conn]*history{}, inserted: map[string]int{}}
}

func (k *knowledge) lined() bool { return k.r.x.Stated() && k.r.x.database.Blocks() }

// all returns the histories in a fixed order, so equal states give equal texts.
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

// A meeting describes the state before a step: the data and the open transactions.
type meeting struct {
	committed string // stock and records
	open      string // histories
	commits   int    // number of commits before the step
}

// String returns the meeting without commits, as it enters a history.
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
		if h.waiting && !flying[c] { // the statement has got its lock, or its wait was given up
			h.add("went on by", step, met.String())
			k.told = true // the buyer receives the result now, and its memory alone does not determine this moment
		}
		h.waiting = flying[c]
	}
	gone := t.ended(flying)
	if k.commits == met.commits {
		return
	}
	for _, h := range t.histories { // a commit changed rows, and the server may refuse to let other transactions write these rows
		h.add(append([]string{"beside"}, gone...)...)
	}
}

// did records a statement. It does not record a BEGIN, which takes no lock.
func (t *transactions) did(o *gate.Op, step string, met meeting) {
	upper := strings.ToUpper(o.Name)
	beyond := strings.Contains(upper, "_LOCK(") && !strings.Contains(upper, "XACT_LOCK(") // the lock belongs to the connection, not to the transaction
	t.every = t.every || beyond || strings.Contains(upper, "SERIALIZABLE") || strings.HasPrefix(upper, "SET ") || strings.HasPrefix(upper, "LOCK TABLE")
	used := ""
	if strings.Contains(upper, "INSERT ") || strings.Contains(upper, "REPLACE ") {
		used = fmt.Sprint(t.inserted) // the earlier INSERTs determine the id of this one, even while it waits
		if t.inserted[o.Name]++; o.Err != nil {
			t.inserted[o.Name+": refused"]++ // a refused INSERT may or may not have used an id
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
