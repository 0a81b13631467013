package explore

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
}

// An Outcome is what one buyer was told.
type Outcome struct {
	Buyer int    `json:"buyer"`
	Told  string `json:"told"` // an outcome of purchase, or "crashed"
	Error string `json:"error,omitempty"`
}

// candidate is the best violation so far: the shortest, then the one with the
// fewest switches between buyers, then the one with the fewest events.
type candidate struct {
	tokens []string
	cost   [3]int
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
	if c == nil || cost[0] < c.cost[0] || cost[0] == c.cost[0] && (cost[1] < c.cost[1] || cost[1] == c.cost[1] && cost[2] < c.cost[2]) {
		return &candidate{e.tokens, cost}
	}
	return c
}

// Replay runs exactly the schedule of a replay line, which must be of this
// strategy, these buyers and this stock.
func (x *Explorer) Replay(ctx context.Context, line string) (*Witness, error) {
	s, err := ParseSchedule(line)
	if err != nil {
		return nil, err
	}
	if s.Strategy != x.config.Strategy.Name || s.Buyers != x.config.Buyers || s.Stock != x.config.Stock || s.Shared != x.config.Shared {
		return nil, fmt.Errorf("the replay line is of %s, not of %s", s.head(), x.schedule(nil).head())
	}
	return x.follow(ctx, s.Tokens)
}

func (x *Explorer) follow(ctx context.Context, tokens []string) (*Witness, error) {
	e, err := x.once(ctx, func(r *run, depth int, actions []action) (int, error) {
		if depth == len(tokens) {
			return -1, fmt.Errorf("%w: the schedule ends before the buyers do; next would be %s", ErrHarness, list(actions))
		}
		for i, a := range actions {
			if a.token == tokens[depth] {
				return i, nil
			}
		}
		return -1, fmt.Errorf("%w: step %d of the schedule is %s, and there are %s", ErrHarness, depth+1, tokens[depth], list(actions))
	}, true)
	if err != nil {
		return nil, err
	}
	if len(e.tokens) != len(tokens) {
		return nil, fmt.Errorf("%w: the buyers are done after %d of %d steps", ErrHarness, len(e.tokens), len(tokens))
	}
	return &Witness{x.schedule(tokens).String(), e.steps, e.verdict, e.why, e.outcomes}, nil
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
	s := Step{Buyer: a.buyer, Stock: books.Leftover, Records: books.Records, Server: a.touches}
	switch a.event {
	case "":
		s.Server = a.op.server
		s.Command, s.Result = w.readable(a.op.buyer, a.op.text), w.readable(a.op.buyer, a.op.result)
		if a.op.blocked || r.flies(a.op) {
			s.Result = "waits for another buyer's transaction"
		}
		s.Note = a.op.note
	case Expire:
		s.Command, s.Result = "(every lease runs out, and its holder does not notice)", ""
	case Crash:
		s.Command, s.Result = "(crashes: its connections end, it is never heard of again)", ""
	case Renew:
		s.Command, s.Result = "(its watchdog is due)", ""
	case Forget:
		s.Command, s.Result = "("+a.server.name+" forgets its keys)", ""
	}
	w.steps = append(w.steps, s)
	for o, step := range w.flying {
		if !r.flies(o) {
			w.steps = append(w.steps, Step{
				Buyer: o.buyer, Command: "(let through) " + w.steps[step].Command, Result: w.readable(o.buyer, o.result),
				Stock: books.Leftover, Records: books.Records, Server: o.server,
			})
			delete(w.flying, o)
		}
	}
	if a.event == "" && r.flies(a.op) {
		w.flying[a.op] = len(w.steps) - 1
	}
	return nil
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
