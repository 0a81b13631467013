package own

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/purchase"
)

// A buyer is one call of Buy.
type buyer struct {
	id       int
	name     string
	order    purchase.Order
	seat     *seat
	strategy purchase.Strategy
	counter  purchase.Strategy // the strategy, behind the shop's Front if the Spec has one
	cancel   context.CancelCauseFunc

	gate    []*gate.Op // commands that wait for their release
	flying  []*gate.Op // released commands without an answer
	blocked bool       // its unanswered commands wait in the database for another buyer
	inside  bool       // it waits for another buyer inside the process, or for a message

	over    bool // Buy has returned
	crashed bool
	gone    bool // it hung up
	refused bool // it was answered "busy" although no other buyer had sent a command

	forgetful atomic.Bool // its code will skip the unlock (event `no-unlock`)
	unlock    func()      // the unlock that its code skipped
	answered  bool        // Buy had returned before the crash, so the answer counts
	receipt   purchase.Receipt
	err       error

	// The next three fields are for a buyer that polls. After a futile attempt, it polls again only after another buyer
	// has changed a server that the attempt asked.
	changes map[string]int // by server: number of changes by other buyers so far
	asks    map[string]int // by server: the value of changes when the current attempt first asked it
	resting bool
	named   bool   // it holds a named lock
	namedBy string // the statement that asked for that lock
	locks   bool   // it may hold other locks of the database
	steps   int    // number of its steps so far
	ends    int    // number of other buyers' transactions that have ended

	views   map[*gate.Conn]view // the data that each of its open transactions sees
	watches map[string][]int    // by server: the value of changes at each WATCH since the last EXEC
}

// runnable reports whether a command at the gate may be released.
func (b *buyer) runnable(o *gate.Op) bool {
	if o.Blocked && b.ends == o.SeenEnds && !o.GivenUp() {
		return false // the database would refuse the command again
	}
	if !b.resting || o.Background {
		return true
	}
	for server, changes := range b.asks {
		if b.changes[server] != changes {
			return true
		}
	}
	return false
}

// unfinished reports whether the buyer's process still has work: Buy has not returned, or a background worker has
// commands.
func (b *buyer) unfinished() bool { return !b.over || len(b.gate) > 0 || len(b.flying) > 0 }

// waits returns the buyer's statement that waits for another transaction, or nil. A statement that SQLite refused as
// busy waits only until it can be retried.
func (b *buyer) waits() *gate.Op {
	if b.blocked {
		return b.flying[0]
	}
	for _, o := range b.gate {
		if o.Blocked && !b.runnable(o) {
			return o
		}
	}
	return nil
}

func (b *buyer) outcome() witness.Outcome {
	o := witness.Outcome{Buyer: b.id, Answer: string(purchase.OutcomeOf(b.err))}
	switch {
	case b.crashed && !b.answered:
		o.Answer = "crashed"
	case b.gone && b.err != nil:
		o.Answer, o.Error = "disconnected", b.err.Error()
	case b.err != nil:
		o.Error = b.err.Error()
	}
	return o
}

func (b *buyer) moves() (own []move, err error) {
	for _, o := range b.gate {
		if b.runnable(o) {
			own = append(own, move{Command: o, Choice: schedule.Choice{
				Token: token(o), Buyer: b.id, Name: o.Name, Touches: o.Server, Effect: o.Effect, Background: o.Background,
			}})
		}
	}
	b.nameWorkers(own)
	slices.SortFunc(own, func(a, b move) int { return strings.Compare(a.Token, b.Token) })
	for i := 1; i < len(own); i++ {
		if own[i].Token == own[i-1].Token {
			return nil, fmt.Errorf("%w: %w: buyer %d, %s and %s", schedule.ErrHarness, schedule.ErrTwoAtOnce, b.id, own[i-1].Name, own[i].Name)
		}
	}
	return own, nil
}

// nameWorkers gives different tokens to two commands of one buyer that wait at the gates of the database and of Redis.
// If the database command is the buyer's own, the Redis command comes from a worker of its process: "1r". If the Redis
// command is a renewal ("1r"), the database command is a ROLLBACK after the end of the context: "1rr".
func (b *buyer) nameWorkers(own []move) {
	mark := func(token string, database bool) {
		has := func(m move, database bool) bool { return m.Token == token && (m.Touches == gate.SQL) == database }
		if !slices.ContainsFunc(own, func(m move) bool { return has(m, !database) }) {
			return
		}
		for i, m := range own {
			if has(m, database) {
				own[i].Token += "r"
			}
		}
	}
	mark(strconv.Itoa(b.id), false)
	mark(strconv.Itoa(b.id)+"r", true)
}

// token returns the token of a command, for example "1r-a": the buyer's number, "r" if a worker sent it, and the
// Redlock node.
func token(o *gate.Op) string {
	background := ""
	if o.Background {
		background = "r"
	}
	return strconv.Itoa(o.Buyer) + background + strings.TrimPrefix(suffix(o.Server), "-")
}

// open reports whether the buyer has an open transaction or a statement without an answer.
func (b *buyer) open() bool {
	return slices.ContainsFunc(b.seat.connector.Open(b.id), (*gate.Conn).InTransaction) ||
		slices.ContainsFunc(b.flying, func(o *gate.Op) bool { return o.Server == gate.SQL })
}

// buyers are all buyers of one run; buyer 1 is the first.
type buyers []*buyer

func (all buyers) find(id int) (*buyer, error) {
	if id < 1 || id > len(all) {
		return nil, fmt.Errorf("%w: a command of no buyer: its context does not come from Buy; give each buyer an instance of its own", schedule.ErrHarness)
	}
	return all[id-1], nil
}

func (all buyers) begun(id int) bool { return all[id-1].steps > 0 }

// refuse finds the buyers that were answered "busy" although no other buyer had sent a command. It marks them, and
// reports whether one is new.
func (all buyers) refuse() (isNew bool) {
	for _, b := range all {
		begun := func(other *buyer) bool { return other != b && other.steps > 0 }
		if b.over && !b.refused && errors.Is(b.err, purchase.ErrBusy) && !slices.ContainsFunc(all, begun) {
			b.refused, isNew = true, true
		}
	}
	return isNew
}

func (all buyers) over() bool {
	return !slices.ContainsFunc(all, func(b *buyer) bool { return !b.over })
}

func (all buyers) before(server string) string {
	var ops []string
	for _, b := range all {
		for _, o := range b.gate {
			if o.Server == server {
				ops = append(ops, fmt.Sprintf("%d %t %s", o.Buyer, o.Background, o.Name))
			}
		}
	}
	slices.Sort(ops)
	return strings.Join(ops, "\n")
}

// pairCameTo describes the result of two commands that were released together, without values that differ between runs.
// For a single command or an event it returns "".
func (all buyers) pairCameTo(m move) string {
	if !m.Pair {
		return ""
	}
	return fmt.Sprintf("%d: %s, %d: %s", m.Command.Buyer, all.cameTo(m.Command), m.Second.Buyer, all.cameTo(m.Second))
}

func (all buyers) cameTo(o *gate.Op) string {
	switch {
	case o.Blocked || all.flies(o):
		return "waits"
	case o.Server == gate.SQL:
		return o.Result
	case o.Changed:
		return "changed"
	}
	return "unchanged"
}

func (all buyers) flies(o *gate.Op) bool {
	return slices.ContainsFunc(all, func(b *buyer) bool { return slices.Contains(b.flying, o) })
}

func (all buyers) fly() bool {
	return slices.ContainsFunc(all, func(b *buyer) bool { return len(b.flying) > 0 })
}

// changed records that a server changed without a buyer's command.
func (all buyers) changed(server string) {
	for _, b := range all {
		b.changes[server]++
	}
}

// sawEnd records that the database rolled back the transaction of a closed connection.
func (all buyers) sawEnd() {
	all.changed(gate.SQL)
	for _, b := range all {
		b.ends++
	}
}

func (all buyers) outcomes() (outcomes []witness.Outcome) {
	for _, b := range all {
		outcomes = append(outcomes, b.outcome())
	}
	return outcomes
}

// where describes the position of each buyer, for an error message.
func (all buyers) where() string {
	var texts []string
	for _, b := range all {
		where := fmt.Sprintf("buyer %d: %d at the gate, %d on the way", b.id, len(b.gate), len(b.flying))
		if b.inside {
			where += ", waits"
		}
		if b.over {
			where += fmt.Sprintf(", done (%v)", b.err)
		}
		texts = append(texts, where)
	}
	return strings.Join(texts, "; ")
}

// moving returns the buyers that neither wait nor are done.
func (all buyers) moving() (moving schedule.Moving) {
	for _, b := range all {
		if len(b.flying) > 0 && !b.blocked {
			moving = append(moving, schedule.Mover{Buyer: b.id, After: b.flying[0].Text})
		} else if !b.over && len(b.gate) == 0 && !b.blocked && !b.inside {
			moving = append(moving, schedule.Mover{Buyer: b.id})
		}
	}
	return moving
}

func without(ops []*gate.Op, o *gate.Op) []*gate.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(other *gate.Op) bool { return other == o })
}
