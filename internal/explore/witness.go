package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/verdict"
)

// A Step is one line of a witness.
type Step struct {
	Buyer   int    `json:"buyer"` // 0: no buyer's doing
	Command string `json:"command"`
	Result  string `json:"result"`
	Stock   int64  `json:"stock"`   // after it, as another connection reads it
	Records int64  `json:"records"` // the same

	Server string `json:"server"`
	Note   string `json:"note,omitempty"` // what it means beyond its answer
}

// A Witness is a schedule that ends badly, or with Replay any schedule.
type Witness struct {
	Schedule string          `json:"schedule"`
	Steps    []Step          `json:"steps"`
	Verdict  verdict.Verdict `json:"verdict"`

	Why      string    `json:"why"`
	Outcomes []Outcome `json:"outcomes"`
	Again    string    `json:"again,omitempty"` // where commands overlapped: how often it ends this way
}

// An Outcome is what one buyer was told.
type Outcome struct {
	Buyer int    `json:"buyer"`
	Told  string `json:"told"` // an outcome of purchase, or "crashed"
	Error string `json:"error,omitempty"`
}

// candidate is the best violation so far: the shortest, then the one with the
// fewest switches between buyers, then the one with the fewest events, then the
// one in which the first buyer goes first.
type candidate struct {
	ended
	cost [3]int
}

func (c *candidate) better(e ended) *candidate {
	cost := [3]int{len(e.tokens), 0, 0}
	last := ""
	for _, token := range e.tokens {
		if token[0] < '0' || token[0] > '9' {
			cost[2]++
			continue
		}
		if last != "" && token[:1] != last {
			cost[1]++
		}
		last = token[:1]
	}
	if c != nil && cmp.Or(slices.Compare(cost[:], c.cost[:]), slices.Compare(e.tokens, c.tokens)) >= 0 {
		return c
	}
	return &candidate{e, cost}
}

// witness runs the schedule once more and writes its steps down. Where commands
// overlapped the steps are those that were seen, and what the further runs are
// for is to say how often it goes that way.
func (c *candidate) witness(ctx context.Context, x *Explorer) (*Witness, error) {
	if c == nil {
		return nil, nil
	}
	s := x.schedule(c.tokens)
	if !s.Overlaps() {
		w, err := x.follow(ctx, c.tokens)
		if errors.Is(err, errMisfit) {
			err = fmt.Errorf("%w: a schedule did not run the same way again: %w", ErrHarness, err)
		}
		return w, err
	}
	w := &Witness{Schedule: s.String(), Steps: c.steps, Verdict: c.verdict, Why: c.why, Outcomes: c.outcomes}
	same := 0
	for range courses {
		again, err := x.follow(ctx, c.tokens)
		switch {
		case errors.Is(err, errMisfit):
		case err != nil:
			return nil, err
		case again.Verdict == w.Verdict:
			same++
		}
	}
	w.Again = fmt.Sprintf("run again %d times, it ended this way %d times", courses, same)
	return w, nil
}

// Replay runs exactly the schedule of a replay line, which must be of this
// strategy, these buyers and this stock. One with overlapped steps is run until
// the server takes a course that fits the line.
func (x *Explorer) Replay(ctx context.Context, line string) (*Witness, error) {
	s, err := ParseSchedule(line)
	if err != nil {
		return nil, err
	}
	if s.Strategy != x.config.Strategy.Name || s.Buyers != x.config.Buyers || s.Stock != x.config.Stock || s.Shared != x.config.Shared {
		return nil, fmt.Errorf("the replay line is of %s, not of %s", s.head(), x.schedule(nil).head())
	}
	w, err := x.follow(ctx, s.Tokens)
	for tries := 1; s.Overlaps() && errors.Is(err, errMisfit) && tries < courses; tries++ {
		w, err = x.follow(ctx, s.Tokens)
	}
	return w, err
}

func (x *Explorer) follow(ctx context.Context, tokens []string) (*Witness, error) {
	e, err := x.once(ctx, func(_ *run, depth int, actions []action) (string, error) {
		if depth == len(tokens) {
			return "", fmt.Errorf("%w: the schedule ends before the buyers do; next would be %s", errMisfit, known(actions))
		}
		return tokens[depth], nil
	}, true)
	if err != nil {
		return nil, err
	}
	if e.cut {
		return nil, fmt.Errorf("%w: it goes round in circles", errMisfit)
	}
	if len(e.tokens) != len(tokens) {
		return nil, fmt.Errorf("%w: the buyers are done after %d of %d steps", errMisfit, len(e.tokens), len(tokens))
	}
	return &Witness{Schedule: x.schedule(tokens).String(), Steps: e.steps, Verdict: e.verdict, Why: e.why, Outcomes: e.outcomes}, nil
}

// known lists actions for an error.
func known(actions []action) string {
	var names []string
	for _, a := range actions {
		names = append(names, a.token+" "+a.name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func (x *Explorer) schedule(tokens []string) Schedule {
	return Schedule{x.config.Strategy.Name, x.config.Buyers, x.config.Stock, x.config.Shared, tokens}
}

// outcomes are what the buyers were told.
func (r *run) outcomes() (all []Outcome) {
	for _, b := range r.buyers {
		o := Outcome{Buyer: b.id, Told: string(purchase.OutcomeOf(b.err))}
		switch {
		case b.crashed:
			o.Told = "crashed"
		case b.err != nil:
			o.Error = b.err.Error()
		}
		all = append(all, o)
	}
	return all
}

// watcher writes down the steps of a run that is shown to people.
type watcher struct {
	x       *Explorer
	observe bool
	steps   []Step
	names   map[string]string // random tokens by what they are called here
	flying  map[*op]int       // commands that wait in the database, by their step
}

func newWatcher(x *Explorer, observe bool) *watcher {
	return &watcher{x: x, observe: observe, names: map[string]string{}, flying: map[*op]int{}}
}

// after looks at the books and notes what the step has done. A command that
// another's step has let through gets its result then.
func (w *watcher) after(ctx context.Context, r *run, a action) error {
	if !w.observe {
		return nil
	}
	books, err := w.x.read(ctx)
	if err != nil {
		return err
	}
	now := Step{Buyer: a.buyer, Stock: books.Leftover, Records: books.Records, Server: a.touches}
	switch a.event {
	case "":
		w.sent(r, a.op, now, "")
	case together:
		w.sent(r, a.op, now, "at once with the next")
		w.sent(r, a.with, now, "sent before the other was answered")
	case Expire:
		w.happened(now, "every lease runs out, and its holder does not notice")
	case Crash:
		w.happened(now, "crashes: its connections end, it is never heard of again")
	case Renew:
		w.happened(now, "its watchdog is due")
	case Forget:
		w.happened(now, a.server.name+" forgets its keys")
	case Timeout:
		w.happened(now, "its wait for the other's transaction times out")
		if _, noted := w.flying[a.op]; !noted {
			w.sent(r, a.op, now, "")
		}
	}
	w.letThrough(r, now)
	w.locks(r, now)
	return nil
}

// locks notes what no command shows: a lock in memory that was taken or freed.
func (w *watcher) locks(r *run, now Step) {
	if !w.observe {
		return
	}
	now.Server = ""
	for _, l := range r.lockEvents() {
		now.Buyer = l.buyer
		w.happened(now, lockWords[l.kind])
	}
}

var lockWords = map[lockstrategy.EventKind]string{lockstrategy.Acquired: "takes the lock, in memory", lockstrategy.Released: "frees the lock"}

func (w *watcher) happened(s Step, what string) {
	s.Command = "(" + what + ")"
	w.steps = append(w.steps, s)
}

// sent notes a command that was let go.
func (w *watcher) sent(r *run, o *op, s Step, note string) {
	s.Buyer, s.Server, s.Command, s.Result = o.buyer, o.server, w.readable(o.buyer, o.text), w.readable(o.buyer, o.result)
	if o.blocked || r.flies(o) {
		s.Result = "waits for another buyer's transaction"
	}
	s.Note = strings.Trim(note+"; "+o.note, "; ")
	w.steps = append(w.steps, s)
	if r.flies(o) {
		w.flying[o] = len(w.steps) - 1
	}
}

// letThrough notes the commands that the step has ended the wait of.
func (w *watcher) letThrough(r *run, now Step) {
	for _, o := range slices.SortedFunc(maps.Keys(w.flying), func(a, b *op) int { return w.flying[a] - w.flying[b] }) {
		if r.flies(o) {
			continue
		}
		s := now
		s.Buyer, s.Server = o.buyer, o.server
		how := "(let through) "
		if o.timedOut.Load() {
			how = "(timed out) "
		}
		s.Command, s.Result = how+w.steps[w.flying[o]].Command, w.readable(o.buyer, o.result)
		w.steps = append(w.steps, s)
		delete(w.flying, o)
	}
}

// time notes what happened by itself.
func (w *watcher) time(told string) {
	if w.observe {
		s := Step{Command: "(" + told + ")"}
		if n := len(w.steps); n > 0 {
			s.Stock, s.Records = w.steps[n-1].Stock, w.steps[n-1].Records
		}
		w.steps = append(w.steps, s)
	}
}

// flies: the op was let go and has no answer.
func (r *run) flies(o *op) bool {
	return slices.ContainsFunc(r.buyers, func(b *buyer) bool { return slices.Contains(b.flying, o) })
}

// secret is what strategies draw at random: rand.Text, a UUID with a number,
// redsync's 16 bytes in base64.
var secret = regexp.MustCompile(`[A-Z2-7]{26}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:[0-9]+)?|[A-Za-z0-9+/]{22}==|redis-lua-[a-z2-7]{26}|[0-9]{13}-[0-9]+|\b[0-9]{13,16}\b|\b3[56][0-9]{5}\b`)

// readable gives random values names, so that a witness reads the same each
// time it is made.
func (w *watcher) readable(buyer int, text string) string {
	return secret.ReplaceAllStringFunc(text, func(value string) string {
		if w.names[value] == "" {
			kind := "token"
			switch {
			case strings.HasPrefix(value, "redis-lua-"):
				kind = "key"
			case len(value) > 13 && value[13] == '-' && value[8] != '-':
				kind = "entry"
			case isNumber(value) && len(value) < 13: // of about forever, in ms
				return "TTL"
			case isNumber(value):
				return "TIME"
			}
			name := kind + strconv.Itoa(buyer)
			for i := 2; w.named(name); i++ {
				name = fmt.Sprintf("%s%d.%d", kind, buyer, i)
			}
			w.names[value] = name
		}
		return w.names[value]
	})
}

func (w *watcher) named(name string) bool {
	for _, other := range w.names {
		if other == name {
			return true
		}
	}
	return false
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// Broken reports whether the schedule ends in a violation.
func (w *Witness) Broken() bool { return w.Verdict != verdict.Holds }
