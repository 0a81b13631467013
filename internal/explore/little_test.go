package explore_test

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
)

// A little is a program in memory: a schedule.Runner for tests of the search. Each buyer has at least one thread, with a
// list of commands for two servers. The earlier answers of a buyer determine what it writes, and what it skips.
type little struct {
	buyers [][][]command
	events []schedule.Event
	wrong  func(*world) string // the error at the end; "": none
	mild   verdict.Verdict     // the verdict of every run without an error; "": holds

	lies     bool                                // writes are described as reads
	unmixed  bool                                // Point.Mixed is never set
	unheld   bool                                // footprints do not include the locks of the transaction
	races    bool                                // the search follows races
	apart    bool                                // a buyer's threads know only their own answers until they join
	anyOrder bool                                // schedule.Choice.AnyOrder of every command
	pool     int                                 // number of commands that a buyer has under way at most; 0: no limit
	rows     func(command) string                // the row that a command uses, for its footprint; nil: no footprints
	trouble  func(*world, *schedule.Point) error // called before each choice; may be nil
	judged   string                              // changes of this name at server a are judged by a rule
	compound func() []string                     // Ended.Compound; may be nil
	ignored  []string                            // Ended.Ignored
	runs     int
	kept     bool                       // the program's memory holds data from an earlier run
	finals   map[string]verdict.Verdict // verdicts of the judged runs
	observed int                        // number of observed runs
}

type command struct {
	do     string // read, write, lock, unlock, local, maybe; in a database: update, commit, see; join: wait for the buyer's other threads
	server string
	name   string // the name that is read, written or locked
}

func (c command) String() string { return c.do + " " + c.server + "." + c.name }

// A world is the state of one run. It implements conduct.Subject.
type world struct {
	l       *little
	c       *conduct.Conductor[*thread]
	values  map[string]int // by server and name
	holder  map[string]*thread
	queue   map[string][]*thread
	threads []*thread
	sends   map[int][]*thread // by buyer: the threads with a command, in the order in which they want a connection
	answers map[int][]string  // by buyer
	tokens  []string
	steps   []witness.Step
}

type thread struct {
	buyer   int
	token   string
	left    []command
	waits   string         // the lock for which it waits
	changes map[string]int // by row: the new values of its transaction
	uses    schedule.Footprint
	failed  bool // its transaction has failed
	joined  bool // it has waited for the buyer's other threads
}

func (l *little) Stated() bool { return false }

// Anew implements schedule.Anew.
func (l *little) Anew() { l.kept = false }

func (l *little) begin() *world {
	w := &world{l: l, values: map[string]int{}, holder: map[string]*thread{}, queue: map[string][]*thread{}, sends: map[int][]*thread{}, answers: map[int][]string{}}
	for b, threads := range l.buyers {
		for i, commands := range threads {
			t := &thread{buyer: b + 1, token: fmt.Sprint(b + 1), left: slices.Clone(commands)}
			if i > 0 {
				t.token += string(rune('a' + i - 1))
			}
			w.threads = append(w.threads, t)
		}
	}
	var events []conduct.Event[*thread]
	for _, name := range l.events {
		events = append(events, conduct.Event[*thread]{Name: name, Moves: func(context.Context) ([]move, error) {
			return []move{{
				Choice: schedule.Choice{Token: string(name), Name: string(name), Global: true},
				Make:   func(context.Context) error { clear(w.values); return nil },
			}}, nil
		}})
	}
	w.c = conduct.New[*thread](w, events, l.events, conduct.Limits{Steps: schedule.MaxSteps})
	return w
}

type move = conduct.Move[*thread]

func (l *little) Run(ctx context.Context, choose schedule.Chooser, observe bool) (schedule.Ended, error) {
	l.runs++
	if observe {
		l.observed++
	}
	w := l.begin()
	return w.c.Run(ctx, func(p *schedule.Point) (string, error) {
		if l.trouble != nil {
			if err := l.trouble(w, p); err != nil {
				return "", err
			}
		}
		return choose(p)
	})
}

func (w *world) Begin(context.Context) error { return nil }
func (w *world) Over() bool                  { return true }

func (w *world) Moves(ctx context.Context) (all []move, _ error) {
	for _, t := range w.threads {
		for len(t.left) > 0 && t.left[0].do == "join" && !slices.ContainsFunc(w.threads, func(other *thread) bool {
			return other != t && other.buyer == t.buyer && (other.waits != "" || len(other.left) > 0)
		}) {
			t.left, t.joined = t.left[1:], true
		}
		if t.waits != "" || len(t.left) == 0 || t.left[0].do == "join" || !w.connects(t) {
			continue
		}
		c := t.left[0]
		effect := schedule.Writes
		switch {
		case c.do == "local":
			effect = schedule.Local
		case c.do == "read" || c.do == "maybe" || c.do == "see" || w.l.lies:
			effect = schedule.Reads
		}
		all = append(all, move{Command: t, Choice: schedule.Choice{Footprint: w.l.footprint(t, c), Token: t.token, Name: c.String(), Touches: c.server, Buyer: t.buyer, Effect: effect, AnyOrder: w.l.anyOrder, Judged: effect == schedule.Writes && c.server == "a" && c.name == w.l.judged}})
	}
	return all, ctx.Err()
}

// connects reports whether the thread has a connection of its buyer's pool for its next command.
func (w *world) connects(t *thread) bool {
	if !slices.Contains(w.sends[t.buyer], t) {
		w.sends[t.buyer] = append(w.sends[t.buyer], t)
	}
	return w.l.pool == 0 || slices.Index(w.sends[t.buyer], t) < w.l.pool
}

// footprints holds the pointer that equal footprints share.
var footprints sync.Map

// footprint returns the footprint of a thread's command; nil for a lock.
func (l *little) footprint(t *thread, c command) *schedule.Footprint {
	if l.rows == nil || c.do == "lock" || c.do == "unlock" {
		return nil
	}
	f := schedule.Footprint{}
	name := l.rows(c)
	switch c.do {
	case "local":
	case "see":
		f = append(f, schedule.Touch{Use: schedule.Sees, Table: name})
	case "update":
		f = append(f, schedule.Touch{Use: schedule.Locks, Table: name})
		if !l.unheld {
			f = f.Holding(t.uses, false)
		}
	case "commit":
		f = slices.Clone(t.uses)
	case "read", "maybe":
		f = append(f, schedule.Touch{Use: schedule.Sees, Table: name})
	default:
		f = append(f, schedule.Touch{Use: schedule.Locks, Table: name}, schedule.Touch{Use: schedule.Shows, Table: name})
	}
	one, _ := footprints.LoadOrStore(f.String(), &f)
	return one.(*schedule.Footprint)
}

func (w *world) Describe(_ context.Context, p *schedule.Point, moves []move) {
	p.Races = w.l.races
	standing, waiting := map[int]bool{}, map[int]map[string]bool{}
	for _, m := range moves {
		standing[m.Buyer] = true
	}
	for _, t := range w.threads {
		if t.waits != "" {
			if waiting[t.buyer] == nil {
				waiting[t.buyer] = map[string]bool{}
			}
			waiting[t.buyer][strings.Split(t.waits, ".")[0]] = true
		}
	}
	for b, servers := range waiting {
		p.Mixed = p.Mixed || !w.l.unmixed && (standing[b] || len(servers) > 1)
	}
}

func (w *world) Do(ctx context.Context, m move) error {
	w.tokens = append(w.tokens, m.Token)
	step := witness.Step{Buyer: m.Buyer, Token: m.Token, Name: m.Name, Command: m.Name, Server: m.Touches}
	if m.Make != nil {
		if err := m.Make(ctx); err != nil {
			return err
		}
	} else {
		step.Result = w.execute(m.Command)
	}
	step.Watched = []string{fmt.Sprint(w.values["a.x"]), fmt.Sprint(w.values["b.x"])}
	w.steps = append(w.steps, step)
	return nil
}

// execute executes a thread's command and returns its answer.
func (w *world) execute(t *thread) string {
	c := t.left[0]
	t.left = t.left[1:]
	w.sends[t.buyer] = slices.DeleteFunc(w.sends[t.buyer], func(other *thread) bool { return other == t })
	at := c.server + "." + c.name
	switch c.do {
	case "read", "maybe":
		w.answer(t, fmt.Sprint(w.values[at]))
		if c.do == "maybe" && w.values[at]%2 == 1 && len(t.left) > 0 {
			t.left = t.left[1:]
		}
	case "write":
		h := fnv.New32()
		fmt.Fprint(h, w.known(t), t.buyer)
		w.values[at] = int(h.Sum32() % 5)
		w.answer(t, "ok")
	case "add":
		w.values[at]++
		w.answer(t, "ok")
	case "take": // the last value read, minus one
		seen := w.answers[t.buyer]
		n := 0
		fmt.Sscan(seen[len(seen)-1], &n)
		w.values[at] = n - 1
		w.answer(t, "ok")
	case "lock":
		if w.holder[at] != nil {
			w.queue[at] = append(w.queue[at], t)
			t.waits = at
			return "waits"
		}
		w.holder[at] = t
		w.answer(t, "locked")
	case "see":
		w.answer(t, fmt.Sprint(w.values[at]))
	case "update":
		w.update(t, at)
	case "commit":
		w.end(t)
	case "unlock":
		if h := w.holder[at]; h != nil && h.buyer == t.buyer {
			delete(w.holder, at)
			w.answer(t, "ok")
			if q := w.queue[at]; len(q) > 0 {
				w.queue[at], w.holder[at], q[0].waits = q[1:], q[0], ""
				w.answer(q[0], "locked, late")
			}
		} else {
			w.answer(t, "not yours")
		}
	default:
		w.answer(t, "begun")
	}
	if t.waits != "" {
		return "waits"
	}
	return w.answers[t.buyer][len(w.answers[t.buyer])-1]
}

// update changes a row in the thread's transaction, like PostgreSQL at READ COMMITTED. If the wait closed a cycle, the
// transaction fails, and releases its rows.
func (w *world) update(t *thread, at string) {
	switch holder := w.holder[at]; {
	case t.failed:
		w.answer(t, "aborted")
	case holder == nil || holder == t:
		w.change(t, at)
	default:
		t.waits = at
		if w.reaches(t, t, map[*thread]bool{}) {
			t.waits, t.failed = "", true
			w.answer(t, "deadlock")
			w.release(t)
			return
		}
		w.queue[at] = append(w.queue[at], t)
	}
}

func (w *world) change(t *thread, at string) {
	if t.changes == nil {
		t.changes = map[string]int{}
	}
	_, again := t.changes[at]
	if !again {
		t.changes[at] = w.values[at]
	}
	w.holder[at] = t
	t.changes[at] = t.changes[at]*7 + t.buyer*2 + len(t.token)
	_, row, _ := strings.Cut(at, ".")
	t.uses = append(t.uses, schedule.Touch{Use: schedule.Locks, Table: row}, schedule.Touch{Use: schedule.Shows, Table: row})
	w.answer(t, fmt.Sprint(t.changes[at]))
}

// reaches reports whether one thread (from) waits for another (to), perhaps through others. A thread waits for the
// holder of the row, and for the threads ahead of it in the queue.
func (w *world) reaches(from, to *thread, seen map[*thread]bool) bool {
	if from.waits == "" || seen[from] {
		return false
	}
	seen[from] = true
	ahead := w.queue[from.waits]
	if at := slices.Index(ahead, from); at >= 0 {
		ahead = ahead[:at]
	}
	return slices.ContainsFunc(append([]*thread{w.holder[from.waits]}, ahead...), func(next *thread) bool {
		return next == to || w.reaches(next, to, seen)
	})
}

// end ends a transaction. It rolls back a failed transaction.
func (w *world) end(t *thread) {
	if t.failed {
		w.answer(t, "rolled back")
	} else {
		maps.Copy(w.values, t.changes)
		w.answer(t, "committed")
	}
	t.failed = false
	w.release(t)
}

// release passes each row of a transaction to the thread that has waited longest.
func (w *world) release(t *thread) {
	rows := slices.Sorted(maps.Keys(t.changes))
	t.changes, t.uses = nil, nil
	for _, at := range rows {
		delete(w.holder, at)
		if q := w.queue[at]; len(q) > 0 {
			w.queue[at], q[0].waits = q[1:], ""
			w.change(q[0], at)
		}
	}
}

// known returns the answers on which the thread's next write depends.
func (w *world) known(t *thread) (known []string) {
	if !w.l.apart {
		return w.answers[t.buyer]
	}
	for _, text := range w.answers[t.buyer] {
		if t.joined || threadOf(text) == threadOf(t.token+":") {
			known = append(known, text)
		}
	}
	slices.SortStableFunc(known, byThread)
	return known
}

// threadOf returns the token of the thread that received an answer; "" for the buyer's first thread.
func threadOf(answer string) string {
	token, _, several := strings.Cut(answer, ":")
	if !several || len(token) == 1 {
		return ""
	}
	return token
}

func byThread(a, b string) int { return cmp.Compare(threadOf(a), threadOf(b)) }

func (w *world) answer(t *thread, text string) {
	w.answers[t.buyer] = append(w.answers[t.buyer], t.token+":"+text)
	if len(t.token) == 1 {
		w.answers[t.buyer][len(w.answers[t.buyer])-1] = text
	}
}

func (w *world) String() string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(w.values)) {
		if w.values[k] != 0 {
			all = append(all, fmt.Sprintf("%s=%d", k, w.values[k]))
		}
	}
	for _, t := range w.threads {
		all = append(all, t.waits)
	}
	if w.l.apart {
		for _, answers := range w.answers {
			slices.SortStableFunc(answers, byThread)
		}
	}
	return fmt.Sprint(all, w.answers)
}

func (w *world) End(_ context.Context, e *schedule.Ended, err error) error {
	l := w.l
	if l.compound != nil {
		e.Compound = l.compound()
	}
	e.Ignored = l.ignored
	if err != nil || e.Pruned || e.Cut {
		return err
	}
	e.Verdict, e.Steps, e.Watch = cmp.Or(l.mild, verdict.Holds), w.steps, []string{"ax", "bx"}
	for b := range l.buyers {
		e.Outcomes = append(e.Outcomes, witness.Outcome{Buyer: b + 1, Answer: "200 " + strings.Join(w.answers[b+1], " ")})
	}
	if l.wrong != nil {
		if why := l.wrong(w); why != "" {
			e.Verdict, e.Why = verdict.Broken, why
			e.Findings = []witness.Finding{{Query: "SELECT x FROM a WHERE x < 0", Columns: []string{"x"}, Rows: [][]string{{fmt.Sprint(w.values["a.x"])}}}}
		}
	}
	if slices.ContainsFunc(w.threads, func(t *thread) bool { return t.waits != "" }) {
		e.Verdict, e.Why = verdict.Stalled, "a buyer waits"
	}
	if l.finals == nil {
		l.finals = map[string]verdict.Verdict{}
	}
	l.finals[w.String()] = e.Verdict
	return nil
}

func littleConfig(l *little) explore.Config {
	return explore.Config{
		OfProgram: explore.OfProgram{Program: "little", Servers: "A 1, B 2", Again: "shop explore --app little.yaml"},
		Buyers:    max(2, len(l.buyers)), Events: l.events, Bound: -1,
	}
}

func openLittle(t testing.TB, c explore.Config, l *little) *explore.Explorer {
	t.Helper()
	x, err := explore.NewOn(c, l, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func searchLittle(t testing.TB, c explore.Config, l *little) explore.Result {
	t.Helper()
	r, err := openLittle(t, c, l).Search(t.Context())
	require.NoError(t, err)
	return r
}

func randomly(r *rand.Rand) *little {
	l := &little{wrong: func(w *world) string {
		if w.values["a.x"] > w.values["b.x"] {
			return "a.x > b.x"
		}
		return ""
	}}
	if r.IntN(8) == 0 { // in this program, a thread waits in a server while its buyer has more to send
		holder := [][]command{{{"lock", "b", "m"}, {"unlock", "b", "m"}}}
		waiter := [][]command{{{"lock", "b", "m"}}, {{[]string{"read", "write", "add"}[r.IntN(3)], "a", "x"}}}
		l.buyers = [][][]command{waiter, holder}
		return l
	}
	if r.IntN(4) == 0 {
		l.events = []schedule.Event{"expire"}
	}
	buyers := 2 + r.IntN(2)
	for range buyers {
		threads := 1 + r.IntN(2)
		var buyer [][]command
		for range threads {
			var commands []command
			for range 1 + r.IntN(6/buyers+2-threads) {
				c := command{
					do:     []string{"read", "read", "maybe", "write", "write", "add", "lock", "unlock", "local"}[r.IntN(9)],
					server: []string{"a", "b"}[r.IntN(2)], name: []string{"x", "x", "y"}[r.IntN(3)],
				}
				if c.do == "lock" || c.do == "unlock" {
					c.name = "m"
				}
				commands = append(commands, c)
			}
			buyer = append(buyer, commands)
		}
		l.buyers = append(l.buyers, buyer)
	}
	return l
}

// parallelly returns a random program in which buyer 1 has two transactions at once.
func parallelly(r *rand.Rand) *little {
	transaction := func(most int) (all []command) {
		for range 1 + r.IntN(most) {
			all = append(all, command{[]string{"update", "update", "update", "see"}[r.IntN(4)], "b", []string{"x", "y", "z"}[r.IntN(3)]})
		}
		if r.IntN(4) == 0 {
			all = append(all, command{"join", "b", ""})
		}
		return append(all, command{"commit", "b", ""})
	}
	l := &little{buyers: [][][]command{{transaction(2), transaction(2)}, {transaction(2)}}}
	if r.IntN(3) == 0 {
		l.buyers[1] = append(l.buyers[1], transaction(1))
	}
	return l
}

// severally returns a random program whose buyers have up to three threads each. Threads that join know all answers. In
// half of the programs, each thread has one command, and waits for a connection of a small pool.
func severally(r *rand.Rand) *little {
	l, most := &little{apart: true}, 2
	if r.IntN(2) == 0 {
		l.pool, most = 1+r.IntN(3), 1
	}
	for range 2 + r.IntN(2) {
		var buyer [][]command
		for range 1 + r.IntN(5-most) {
			var commands []command
			for range 1 + r.IntN(most) {
				c := command{
					do:     []string{"read", "read", "read", "write", "add", "maybe", "update", "local"}[r.IntN(2+3*most)],
					server: []string{"a", "b", "b"}[r.IntN(3)], name: []string{"x", "x", "y", "z"}[r.IntN(4)],
				}
				if c.do == "update" {
					c.server = "b"
				}
				if commands = append(commands, c); c.do == "update" {
					commands = append(commands, command{"commit", "b", ""})
				}
			}
			buyer = append(buyer, commands)
		}
		if r.IntN(2) == 0 {
			buyer[0] = append(buyer[0], command{"join", "b", ""}, command{[]string{"write", "read", "add"}[r.IntN(3)], "b", []string{"x", "y"}[r.IntN(2)]})
		}
		l.buyers = append(l.buyers, buyer)
	}
	return l
}

// threeBuyers returns a random program of three buyers with one thread each.
func threeBuyers(r *rand.Rand) *little {
	l := &little{}
	for range 3 {
		var commands []command
		for range 1 + r.IntN(3) {
			commands = append(commands, command{[]string{"read", "read", "write", "add"}[r.IntN(4)], "b", []string{"x", "y", "z"}[r.IntN(3)]})
		}
		l.buyers = append(l.buyers, [][]command{commands})
	}
	return l
}

// atMost reports whether the program has at most n schedules if no command waits.
func (l *little) atMost(n float64) bool {
	orders, commands := 1.0, len(l.events)
	for _, threads := range l.buyers {
		for _, t := range threads {
			for i := range t {
				commands++
				orders *= float64(commands) / float64(i+1)
			}
		}
	}
	return orders <= n
}

// oversells returns a naive shop with a log: each buyer reads the stock, sells, and writes to the log.
func oversells() *little {
	buyer := [][]command{{{"add", "b", "visits"}, {"read", "a", "x"}, {"add", "a", "x"}}}
	return &little{buyers: [][][]command{buyer, buyer}, wrong: func(w *world) string {
		if strings.HasSuffix(w.answers[1][1], "0") && strings.HasSuffix(w.answers[2][1], "0") {
			return "both have seen it"
		}
		return ""
	}}
}
