package target

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/fold"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A bypass lets the commands pass that the file ignores, and records them. A transaction of such
// commands passes as a whole: its BEGIN, since it changes nothing, and its end, since no command that
// counts came before. The end of any other transaction counts, even if an entry matches it. All methods are
// called with gateTable.mu held.
type bypass struct {
	rules   app.Ignore
	own     map[*wire.Conn]bool         // the transaction, if one is open, has only ignored commands
	counted map[*wire.Conn]bool         // it may have others
	flying  map[*wire.Command]time.Time // ignored and not answered yet, with the time of their arrival
	passed  map[template]bool           // since gateTable.close
	expires bool                        // one of them has changed Redis since the last look
	last    *wire.Conn                  // received the last answer; nil: none did
}

// A template is a command without its values; a command of Redis keeps them.
type template struct{ protocol, text string }

func newBypass(rules app.Ignore) bypass {
	return bypass{rules: rules, own: map[*wire.Conn]bool{}, counted: map[*wire.Conn]bool{}, flying: map[*wire.Command]time.Time{}, passed: map[template]bool{}}
}

// mostIgnored bounds the commands that are recorded in a run, since a poller may send without end.
const mostIgnored = 1000

func templateOf(c *wire.Command) template {
	text := c.InFull()
	if c.Conn().Protocol != "redis" {
		text = naming.Skeleton(text)
	}
	return template{c.Conn().Protocol, text}
}

// passes reports whether a command that has arrived at a gate passes.
func (b *bypass) passes(c *wire.Command) bool {
	if len(b.rules.Entries) == 0 || !c.Gated || !b.ignores(c) {
		return false
	}
	b.flying[c] = time.Now()
	return true
}

// ignores decides whether a command is ignored.
func (b *bypass) ignores(c *wire.Command) bool {
	conn, text := c.Conn(), c.InFull()
	if d, sql := effect.DialectOf(conn.Protocol); sql {
		m := effect.Mentions(text, d)
		switch {
		case m.Controls && m.Begins && !m.Ends && c.Effect == schedule.Local && !c.Ends: // no transaction is open
			b.own[conn] = true
			delete(b.counted, conn)
			return true
		case m.Controls && b.own[conn]:
			if c.Ends {
				delete(b.own, conn)
			}
			return true
		}
		if c.Ends {
			defer func() { delete(b.own, conn); delete(b.counted, conn) }()
		}
	}
	if c.Ends && b.counted[conn] || !b.rules.Names(conn.Protocol, text) {
		b.counted[conn] = true
		delete(b.own, conn)
		return false
	}
	if !b.counted[conn] {
		b.own[conn] = true
	}
	if len(b.passed) < mostIgnored {
		b.passed[templateOf(c)] = true
	}
	return true
}

// answered records the answer to a command that has passed, and reports whether the command is ignored.
func (b *bypass) answered(c *wire.Command) bool {
	_, is := b.flying[c]
	delete(b.flying, c)
	if is {
		b.last = c.Conn()
	}
	b.expires = b.expires || is && c.Answer.Changed && c.Conn().Protocol == "redis"
	return is
}

// left forgets a connection that has ended.
func (b *bypass) left(conn *wire.Conn) {
	delete(b.own, conn)
	delete(b.counted, conn)
	if b.last == conn {
		b.last = nil
	}
	maps.DeleteFunc(b.flying, func(c *wire.Command, _ time.Time) bool { return c.Conn() == conn })
}

// longestIgnored is the time after which an ignored command that waits in its server for a buyer's lock
// is an error.
const longestIgnored = 3 * time.Second

// An ignoreGuard ensures that ignored commands hide nothing: they must have nothing to do with the
// commands that are steps, nor with the rules.
type ignoreGuard struct {
	x      *Runner
	tables map[string]serverstate.Tables // by protocol
	rule   map[string]bool               // objects that the rules name
	opaque string                        // a rule that may read other objects, too; "" if there is none
	known  map[template]fold.Touch
	asked  time.Time // the last look for a command that waits
}

// begin reads the tables. A failure leaves them unknown, and every statement undecided.
func (g *ignoreGuard) begin(ctx context.Context) {
	g.tables, g.known, g.rule = readTables(ctx, g.x.servers), map[template]fold.Touch{}, map[string]bool{}
	for _, protocol := range []string{"mysql", "postgres"} {
		for _, query := range g.x.app.RulesOn(protocol) {
			t := fold.TouchOf(protocol, query, g.tables[protocol])
			maps.Copy(g.rule, t.Touches)
			if t.Undecided {
				g.opaque = query
			}
		}
	}
}

// on reports whether the file ignores any command.
func (g *ignoreGuard) on() bool { return len(g.x.app.Ignore.Entries) > 0 }

// stretch extends the leases in Redis that ignored commands have set, so that none ends by the clock.
func (g *ignoreGuard) stretch(ctx context.Context) error {
	redis := g.x.backends["redis"]
	if redis == nil || !g.on() {
		return nil
	}
	return redis.after(ctx)
}

// look ensures between two steps that no ignored command disturbs them, see stretch and blocked.
func (g *ignoreGuard) look(ctx context.Context) error {
	if !g.on() {
		return nil
	}
	f := g.x.gateTable
	f.mu.Lock()
	expires := f.bypass.expires
	f.bypass.expires = false
	f.mu.Unlock()
	if expires {
		if err := g.stretch(ctx); err != nil {
			return err
		}
	}
	return g.blocked(ctx)
}

// touch analyses a command. It leaves out the tables that the file ignores.
func (g *ignoreGuard) touch(c template) fold.Touch {
	t, known := g.known[c]
	if !known {
		t = fold.TouchOf(c.protocol, c.text, g.tables[c.protocol])
		for _, objects := range []map[string]bool{t.Touches, t.Writes} {
			for _, name := range g.x.app.Ignore.Tables {
				delete(objects, c.protocol+" "+name)
			}
		}
		if len(g.known) < 10*mostIgnored {
			g.known[c] = t
		}
	}
	return t
}

// A hidden is an ignored command that may hide something, and why. ruled reports that it writes a table
// that a rule of never reads.
type hidden struct {
	text  string
	ruled bool
}

// hidden returns the ignored commands of the run that may hide something. steps are its other commands. Of
// Redis it compares only commands on one key, since the queues of many programs are scripts.
func (g *ignoreGuard) hidden(steps map[template]bool) (all []hidden) {
	if !g.on() {
		return nil
	}
	f := g.x.gateTable
	f.mu.Lock()
	passed := slices.Collect(maps.Keys(f.bypass.passed))
	f.mu.Unlock()
	touches, writes := maps.Clone(g.rule), map[string]bool{}
	opaque := map[string]string{} // by protocol: a step that may touch any table
	for c := range steps {
		t := g.touch(c)
		if t.Undecided {
			opaque[c.protocol] = c.text
		}
		maps.Copy(touches, t.Touches)
		maps.Copy(writes, t.Writes)
	}
	if len(passed) == mostIgnored {
		all = append(all, hidden{text: fmt.Sprintf("%d different commands passed in one run, and later ones were not compared with the steps", mostIgnored)})
	}
	for _, c := range passed {
		t := g.touch(c)
		why := g.why(t, touches, writes)
		if step := opaque[c.protocol]; why == "" && step != "" && len(t.Touches) > 0 && c.protocol != "redis" {
			why = fmt.Sprintf("touches %s, and the step %q may touch any table", slices.Min(slices.Collect(maps.Keys(t.Touches))), naming.Short(step))
		}
		if why != "" && !(c.protocol == "redis" && why == undecided) {
			ruled := func(object string) bool { return g.rule[object] }
			all = append(all, hidden{fmt.Sprintf("%q %s", naming.Short(c.text), why), slices.ContainsFunc(slices.Collect(maps.Keys(t.Writes)), ruled)})
		}
	}
	slices.SortFunc(all, func(a, b hidden) int { return strings.Compare(a.text, b.text) })
	return all
}

// undecided says that the objects of a statement are not known.
const undecided = "may touch any table"

// why says how an ignored command conflicts with the objects that steps and rules touch and that steps
// write; "" if it does not.
func (g *ignoreGuard) why(t fold.Touch, touches, writes map[string]bool) string {
	for _, object := range slices.Sorted(maps.Keys(t.Touches)) {
		switch {
		case t.Writes[object] && g.rule[object]:
			return fmt.Sprintf("writes %s, which a rule of never reads", object)
		case t.Writes[object] && touches[object]:
			return fmt.Sprintf("writes %s, and a step touches it", object)
		case writes[object]:
			return fmt.Sprintf("reads %s, and a step writes it", object)
		}
	}
	switch {
	case t.Undecided || t.Wild:
		return undecided
	case len(t.Writes) > 0 && g.opaque != "":
		return fmt.Sprintf("writes, and the rule %q reads tables that are not known", naming.Short(g.opaque))
	}
	return ""
}

// blocked returns an error if an ignored command waits in its server for the lock of a buyer.
func (g *ignoreGuard) blocked(ctx context.Context) error {
	f := g.x.gateTable
	f.mu.Lock()
	var late []*wire.Command
	for c, since := range f.bypass.flying {
		if time.Since(since) > longestIgnored {
			late = append(late, c)
		}
	}
	f.mu.Unlock()
	if len(late) == 0 || time.Since(g.asked) < time.Second {
		return nil
	}
	g.asked = time.Now()
	for _, c := range late {
		waits, err := g.x.backends[c.Conn().Protocol].waiting(ctx, false)
		if err != nil {
			return err
		}
		if waits[c.Conn().ID] {
			return fmt.Errorf("ignore: %q waits for a buyer's lock, so it must be a step; write a pattern in `ignore` that does not match it", naming.Short(c.Text))
		}
	}
	return nil
}
