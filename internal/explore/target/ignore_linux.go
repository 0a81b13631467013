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
	"github.com/oversell/oversell/internal/explore/wire"
)

// An ignoring passes the commands that the file ignores, and records them. A transaction of such
// commands passes as a whole: its BEGIN, since it changes nothing, and its end, since no command that
// counts came before. The end of any other transaction counts, even if an entry matches it. All methods are
// called with floor.mu held.
type ignoring struct {
	rules   app.Ignore
	own     map[*wire.Conn]bool         // the transaction, if one is open, has only ignored commands
	counted map[*wire.Conn]bool         // it may have others
	flying  map[*wire.Command]time.Time // ignored, by their arrival, and not answered yet
	passed  map[ignored]bool            // since floor.close
	expires bool                        // one of them has changed Redis since the last look
	last    *wire.Conn                  // received the last answer; nil: none did
}

// An ignored is a command that has passed. text has no values if it is a statement.
type ignored struct{ protocol, text string }

func newIgnoring(rules app.Ignore) ignoring {
	return ignoring{rules: rules, own: map[*wire.Conn]bool{}, counted: map[*wire.Conn]bool{}, flying: map[*wire.Command]time.Time{}, passed: map[ignored]bool{}}
}

// mostIgnored bounds the commands that are recorded in a run, since a poller may send without end.
const mostIgnored = 1000

// stepOf returns a command without its values.
func stepOf(c *wire.Command) ignored {
	text := whole(c)
	if c.Conn().Protocol != "redis" {
		text = skeleton(text)
	}
	return ignored{c.Conn().Protocol, text}
}

// whole returns the text of a command in full length.
func whole(c *wire.Command) string {
	if c.Whole != nil {
		return c.Whole()
	}
	return c.Text
}

// passes reports whether a command that has arrived at a gate passes.
func (g *ignoring) passes(c *wire.Command) bool {
	if len(g.rules.Entries) == 0 || !c.Gated {
		return false
	}
	conn, text := c.Conn(), whole(c)
	if d, sql := effect.DialectOf(conn.Protocol); sql {
		m := effect.Mentions(text, d)
		switch {
		case m.Controls && m.Begins && !m.Ends && c.Effect == schedule.Local && !c.Ends: // no transaction is open
			g.own[conn] = true
			delete(g.counted, conn)
			return true
		case m.Controls && g.own[conn]:
			if c.Ends {
				delete(g.own, conn)
			}
			return true
		}
		if c.Ends {
			defer func() { delete(g.own, conn); delete(g.counted, conn) }()
		}
	}
	if c.Ends && g.counted[conn] || !g.rules.Names(conn.Protocol, text) {
		g.counted[conn] = true
		delete(g.own, conn)
		return false
	}
	if !g.counted[conn] {
		g.own[conn] = true
	}
	if len(g.passed) < mostIgnored {
		g.passed[stepOf(c)] = true
	}
	g.flying[c] = time.Now()
	return true
}

// answered records the answer to a command that has passed, and reports whether the command is ignored.
func (g *ignoring) answered(c *wire.Command) bool {
	_, is := g.flying[c]
	delete(g.flying, c)
	if is {
		g.last = c.Conn()
	}
	g.expires = g.expires || is && c.Answer.Changed && c.Conn().Protocol == "redis"
	return is
}

// left forgets a connection that has ended.
func (g *ignoring) left(conn *wire.Conn) {
	delete(g.own, conn)
	delete(g.counted, conn)
	if g.last == conn {
		g.last = nil
	}
	maps.DeleteFunc(g.flying, func(c *wire.Command, _ time.Time) bool { return c.Conn() == conn })
}

// longestIgnored is the time after which an ignored command that waits in its server for a buyer's lock
// is an error.
const longestIgnored = 3 * time.Second

// An overlooking ensures that ignored commands hide nothing: they must have nothing to do with the
// commands that are steps, nor with the rules.
type overlooking struct {
	x      *Runner
	tables map[string]serverstate.Tables // by protocol
	rule   map[string]bool               // objects that the rules name
	opaque string                        // a rule that may read other objects, too; "" if there is none
	known  map[ignored]fold.Touch
	asked  time.Time // the last look for a command that waits
}

// begin reads the tables. A failure leaves them unknown, and every statement undecided.
func (o *overlooking) begin(ctx context.Context) {
	o.tables, o.known, o.rule = readTables(ctx, o.x.servers), map[ignored]fold.Touch{}, map[string]bool{}
	for _, protocol := range []string{"mysql", "postgres"} {
		for _, query := range o.x.app.RulesOn(protocol) {
			t := fold.TouchOf(protocol, query, o.tables[protocol])
			maps.Copy(o.rule, t.Touches)
			if t.Undecided {
				o.opaque = query
			}
		}
	}
}

// on reports whether the file ignores any command.
func (o *overlooking) on() bool { return len(o.x.app.Ignore.Entries) > 0 }

// stretch extends the leases in Redis that ignored commands have set, so that none ends by the clock.
func (o *overlooking) stretch(ctx context.Context) error {
	redis := o.x.backends["redis"]
	if redis == nil || !o.on() {
		return nil
	}
	return redis.after(ctx)
}

// look ensures between two steps that no ignored command disturbs them, see stretch and blocked.
func (o *overlooking) look(ctx context.Context) error {
	if !o.on() {
		return nil
	}
	f := o.x.floor
	f.mu.Lock()
	expires := f.ignoring.expires
	f.ignoring.expires = false
	f.mu.Unlock()
	if expires {
		if err := o.stretch(ctx); err != nil {
			return err
		}
	}
	return o.blocked(ctx)
}

// touch analyses a command. Those of a table that the file ignores do not count there.
func (o *overlooking) touch(c ignored) fold.Touch {
	t, known := o.known[c]
	if !known {
		t = fold.TouchOf(c.protocol, c.text, o.tables[c.protocol])
		for _, objects := range []map[string]bool{t.Touches, t.Writes} {
			for _, name := range o.x.app.Ignore.Tables {
				delete(objects, c.protocol+" "+name)
			}
		}
		if len(o.known) < 10*mostIgnored {
			o.known[c] = t
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

// hidden returns the ignored commands of the run that may hide something. steps are its other commands.
func (o *overlooking) hidden(steps map[ignored]bool) (all []hidden) {
	if !o.on() {
		return nil
	}
	f := o.x.floor
	f.mu.Lock()
	passed := slices.Collect(maps.Keys(f.ignoring.passed))
	f.mu.Unlock()
	touches, writes := maps.Clone(o.rule), map[string]bool{}
	opaque := map[string]string{} // by protocol: a step that may touch any table
	for c := range steps {
		t := o.touch(c)
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
		t := o.touch(c)
		why := o.why(t, touches, writes)
		if step := opaque[c.protocol]; why == "" && step != "" && len(t.Touches) > 0 && c.protocol != "redis" {
			why = fmt.Sprintf("touches %s, and the step %q may touch any table", slices.Min(slices.Collect(maps.Keys(t.Touches))), short(step))
		}
		if why != "" && !(c.protocol == "redis" && why == undecided) {
			ruled := func(object string) bool { return o.rule[object] }
			all = append(all, hidden{fmt.Sprintf("%q %s", short(c.text), why), slices.ContainsFunc(slices.Collect(maps.Keys(t.Writes)), ruled)})
		}
	}
	slices.SortFunc(all, func(a, b hidden) int { return strings.Compare(a.text, b.text) })
	return all
}

// undecided says that the objects of a statement are not known.
const undecided = "may touch any table"

// why says how an ignored command conflicts with objects that the steps and the rules touch and write;
// "" if it does not.
func (o *overlooking) why(t fold.Touch, touches, writes map[string]bool) string {
	for _, object := range slices.Sorted(maps.Keys(t.Touches)) {
		switch {
		case t.Writes[object] && o.rule[object]:
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
	case len(t.Writes) > 0 && o.opaque != "":
		return fmt.Sprintf("writes, and the rule %q reads tables that are not known", short(o.opaque))
	}
	return ""
}

// blocked returns an error if an ignored command waits in its server for the lock of a buyer.
func (o *overlooking) blocked(ctx context.Context) error {
	f := o.x.floor
	f.mu.Lock()
	var late []*wire.Command
	for c, since := range f.ignoring.flying {
		if time.Since(since) > longestIgnored {
			late = append(late, c)
		}
	}
	f.mu.Unlock()
	if len(late) == 0 || time.Since(o.asked) < time.Second {
		return nil
	}
	o.asked = time.Now()
	for _, c := range late {
		waits, err := o.x.backends[c.Conn().Protocol].waiting(ctx, false)
		if err != nil {
			return err
		}
		if waits[c.Conn().ID] {
			return fmt.Errorf("ignore: %q waits for a buyer's lock, so it must be a step; write a pattern in `ignore` that does not match it", short(c.Text))
		}
	}
	return nil
}
