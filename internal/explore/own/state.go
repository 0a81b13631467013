package own

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/purchase"
)

// A memory is a hash of all input of a process, in order: answers, messages, fired timers, times. Nothing else affects
// the process. So in two runs with equal memories, the process is in the same state. Several goroutines may use
// a memory.
type memory struct {
	mu    sync.Mutex
	sum   [sha256.Size]byte
	ahead int64 // clock.ahead when the process last read its clock
}

func (m *memory) hear(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum = sha256.Sum256(append(m.sum[:], what...))
}

// see adds the clock's time to the memory if the time has changed since the process last read it.
func (m *memory) see(ahead int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ahead != m.ahead {
		m.ahead = ahead
		m.sum = sha256.Sum256(fmt.Append(m.sum[:], "it is later by ", ahead))
	}
}

func (m *memory) hash() [sha256.Size]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sum
}

// newMemories returns one memory per buyer, or one for all if they share a process.
func newMemories(buyers int, shared bool) (all []*memory) {
	for i := range buyers {
		if shared && i > 0 {
			all = append(all, all[0])
		} else {
			all = append(all, &memory{})
		}
	}
	return all
}

// A knowledge computes the State of a run: from the memories of the buyers' processes, the committed data, and the
// histories of the open transactions. Two runs with equal States are in the same state.
type knowledge struct {
	r            *run
	names        secrets // the names that replace random values
	memories     []*memory
	books        books
	commits      int // number of transactions that wrote and committed
	transactions transactions
	told         bool // the last step delivered a message, or time has passed since
}

func newKnowledge(r *run, buyers int) knowledge {
	return knowledge{r: r, names: secrets{}, memories: newMemories(buyers, r.x.spec.Shared), transactions: newTransactions()}
}

// books are the committed stock and records of the product.
type books struct {
	known bool // text and ids are up to date
	text  string
	ids   []int64
}

// exactly returns a text for a step. The text contains everything that other buyers can notice of the step.
func (k *knowledge) exactly(m move) string {
	if m.Command == nil {
		return m.Token
	}
	return fmt.Sprintf("%s %s: %s", m.Token, k.exactOf(m.Command, m.Buyer, m.Command.Text), k.exactOf(m.Command, m.Buyer, m.Command.Whole()))
}

// remember adds a command's answer to the memory of its sender. It leaves out the command, which the memory determines.
func (k *knowledge) remember(b *buyer, o *gate.Op) {
	if !k.r.x.Stated() {
		return
	}
	k.books.known = k.books.known && !o.Ends
	k.names.readable(b.id, o.Text)
	k.memories[b.id-1].hear(fmt.Sprintf("%s %s: %s", token(o), o.Name, k.exactOf(o, b.id, o.Whole())))
	if o.Ends {
		delete(b.views, o.Conn())
	}
}

// heard adds the messages of a step to the memories of the processes that received them. It also records the view of
// each transaction that has begun to read.
func (k *knowledge) heard(ctx context.Context, step string) error {
	heard := k.r.x.gates.PubSub.Heard()
	k.told = k.told || len(heard) > 0
	for owner, n := range heard {
		k.memories[max(0, owner-1)].hear(fmt.Sprintf("%d messages by %s", n, step))
	}
	if !k.r.x.Stated() {
		return nil
	}
	for _, b := range k.r.buyers {
		for _, c := range b.seat.connector.Open(b.id) {
			if _, seen := b.views[c]; seen || !c.Viewing() {
				continue
			}
			if err := k.readBooks(ctx); err != nil {
				return err
			}
			b.views[c] = view{k.exact(b.id, k.books.text), k.commits}
		}
	}
	return nil
}

// A view is the snapshot from which a transaction reads. If other transactions have committed since, the server may
// refuse the transaction's writes.
type view struct {
	text    string
	commits int // number of commits before the snapshot
}

func (k *knowledge) readBooks(ctx context.Context) (err error) {
	if k.books.known {
		return nil
	}
	k.books.text, k.books.ids, err = k.r.x.stock.Whole(ctx)
	k.books.known = err == nil
	return err
}

// state implements schedule.Point.State. It hashes the committed data on the servers, the memory of each process, and
// the explorer's own records about the run.
func (k *knowledge) state(ctx context.Context) (schedule.State, error) {
	if err := k.readBooks(ctx); err != nil {
		return schedule.State{}, err
	}
	var s strings.Builder
	s.WriteString(k.exact(0, k.books.text))
	for _, server := range k.r.x.servers {
		held, err := server.Held(ctx)
		if err != nil {
			return schedule.State{}, err
		}
		for _, key := range held {
			thirds := (key.TTL + schedule.Forever/6) * 3 / schedule.Forever
			fmt.Fprintf(&s, "%s %s %q %t %d\n", server.Name, key.Name, k.exact(0, key.Value), key.TTL > 0, thirds)
		}
	}
	passing := k.r.passing
	fmt.Fprintf(&s, "%d %v %v %v %v %v\n", k.r.x.clock.ahead.Load(), k.r.conductor.Happened(), passing.phase, passing.renewed, passing.woken, passing.ranOut)
	fmt.Fprintf(&s, "%v %v %v %v\n", k.r.owners, k.r.named, k.r.touched, k.r.restocked)
	for _, b := range k.r.buyers {
		s.WriteString(k.stateOf(b) + "\n")
	}
	if k.lined() {
		s.WriteString(k.transactions.state())
	}
	return sha256.Sum256([]byte(s.String())), nil
}

func (k *knowledge) stateOf(b *buyer) string {
	answer := ""
	if b.over && (!b.crashed || b.answered) {
		answer = fmt.Sprintf("%s %d %t %t", purchase.OutcomeOf(b.err), slices.Index(k.books.ids, b.receipt.ID), b.refused, b.gone)
	}
	switch {
	case b.crashed:
		return "crashed " + answer
	case k.ended(b):
		return "ended " + answer
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%x %s %t %t %t %d", k.memories[b.id-1].hash(), answer, b.inside, b.resting, b.steps > 0, len(k.r.dogs.armed(b)))
	for _, server := range slices.Sorted(maps.Keys(b.asks)) {
		fmt.Fprintf(&s, " %s %t", server, b.changes[server] != b.asks[server])
	}
	for _, server := range slices.Sorted(maps.Keys(b.watches)) { // if the key was written, EXEC returns nil, even if its value is the same again
		for _, changes := range b.watches[server] {
			fmt.Fprintf(&s, " watches %s %t", server, b.changes[server] != changes)
		}
	}
	for _, o := range slices.SortedFunc(slices.Values(b.gate), func(x, y *gate.Op) int { return strings.Compare(token(x), token(y)) }) {
		fmt.Fprintf(&s, " %s %s %t %t %t", token(o), o.Name, o.Blocked, o.Blocked && o.SeenEnds == b.ends, o.GivenUp())
	}
	for _, o := range slices.SortedFunc(slices.Values(b.flying), func(x, y *gate.Op) int { return strings.Compare(token(x), token(y)) }) {
		fmt.Fprintf(&s, " waits: %s %s %t", token(o), o.Name, o.GivenUp())
	}
	var views []string
	for _, v := range b.views {
		views = append(views, fmt.Sprintf(" sees %s %t", v.text, v.commits != k.commits))
	}
	slices.Sort(views)
	s.WriteString(strings.Join(views, ""))
	return s.String()
}

// ended reports whether the buyer's process certainly sends no more commands. It returns false if the process has a
// worker or other buyers.
func (k *knowledge) ended(b *buyer) bool {
	return !b.unfinished() && !k.r.x.outlives && len(k.r.dogs.armed(b)) == 0 && len(b.views) == 0
}

// number matches a time since 1970 in ms or µs, or the id of a record, see serverstate.FirstID. It also matches the
// whole name of a lock holder, UUID:digits, so that the method exact does not take the digits for a time.
var number = regexp.MustCompile(uuidOf + `:[0-9]+|\b(?:[0-9]{16}|[0-9]{13}|[0-9]{11})\b(?:-[0-9]+)?`)

// timeLeft matches a number that may be the remaining time of a lease, in ms. Like number, it also matches the whole
// name of a lock holder.
var timeLeft = regexp.MustCompile(uuidOf + `:[0-9]+|\b[1-3][0-9]{6}\b`)

// exactOf calls exact for the text of a command or of its answer. An answer of a lock server may contain the remaining
// time of a lease, which depends on the speed of the run. In events, a third of a lease passes at a time. So exactOf
// rounds up a number that is just below one, two or three thirds of schedule.Forever.
func (k *knowledge) exactOf(o *gate.Op, buyer int, text string) string {
	if o.Server != gate.SQL && mayHide(text) {
		text = timeLeft.ReplaceAllStringFunc(text, func(value string) string {
			n, err := strconv.ParseInt(value, 10, 64)
			third := schedule.Forever.Milliseconds() / 3
			thirds := (n + third - 1) / third
			if err != nil || thirds*third-n > longestRun.Milliseconds() {
				return value
			}
			return fmt.Sprintf("~%d/3", thirds)
		})
	}
	return k.exact(buyer, text)
}

// longestRun is longer than any run, even on a slow machine.
const longestRun = 100 * time.Second

// exact rewrites a text so that it is equal in all runs that reach the same state. Names replace random values. Times
// count from the start of the schedule, and ids from the first id.
func (k *knowledge) exact(buyer int, text string) string {
	if !mayHide(text) {
		return text
	}
	text = number.ReplaceAllStringFunc(text, func(value string) string {
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil: // not a number: the id of a stream's entry, or a UUID followed by a number
		case len(value) == 11:
			if id := n - k.r.x.firstID; k.r.x.firstID > 0 && id >= 0 && id < serverstate.FirstID {
				return fmt.Sprintf("#%d", id)
			}
		case len(value) == 13:
			return fmt.Sprintf("@%d ms", n-k.r.x.clock.start.Load()/1e6)
		case len(value) == 16:
			return fmt.Sprintf("@%d us", n-k.r.x.clock.start.Load()/1e3)
		}
		return value
	})
	return k.names.named(buyer, text)
}
