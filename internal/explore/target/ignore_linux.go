package target

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/fold"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/session"
)

// longestIgnored is how long an ignored command may wait in its server for a buyer's lock. A longer wait is an error.
const longestIgnored = 3 * time.Second

// An ignoreGuard checks that the commands under `ignore` in oversell.yaml hide no bug. If an ignored command changes a
// table or key, no step may use it, and vice versa. No ignored command may change a table that a rule reads.
type ignoreGuard struct {
	programs session.Programs
	tables   map[string]serverstate.Tables // by protocol
	rule     map[string]bool               // tables and other objects that the rules name
	opaque   string                        // a rule that may read unknown tables; "": none
	known    map[gates.Template]fold.Touch
	asked    time.Time // time of the last check for waiting commands
}

// begin reads the tables. If that fails, the tables of each statement count as unknown.
func (g *ignoreGuard) begin(ctx context.Context) {
	g.tables, g.known, g.rule = readTables(ctx, g.programs.Servers), map[gates.Template]fold.Touch{}, map[string]bool{}
	for _, protocol := range []string{"mysql", "postgres"} {
		for _, query := range g.programs.App.RulesOn(protocol) {
			t := fold.TouchOf(protocol, query, g.tables[protocol])
			maps.Copy(g.rule, t.Touches)
			if t.Undecided {
				g.opaque = query
			}
		}
	}
}

// on reports whether oversell.yaml ignores any command.
func (g *ignoreGuard) on() bool { return len(g.programs.App.Ignore.Entries) > 0 }

// stretch extends the leases that ignored commands have set in Redis, so that none expires by the clock.
func (g *ignoreGuard) stretch(ctx context.Context) error {
	redis := g.programs.Backends["redis"]
	if redis == nil || !g.on() {
		return nil
	}
	return redis.After(ctx)
}

// look checks between two steps that ignored commands do not disturb the run, see stretch and blocked.
func (g *ignoreGuard) look(ctx context.Context) error {
	if !g.on() {
		return nil
	}
	if g.programs.Gates.Bypass.ChangedRedis() {
		if err := g.stretch(ctx); err != nil {
			return err
		}
	}
	return g.blocked(ctx)
}

// touch returns the objects that a command uses, except the tables that oversell.yaml ignores.
func (g *ignoreGuard) touch(c gates.Template) fold.Touch {
	t, known := g.known[c]
	if !known {
		t = fold.TouchOf(c.Protocol, c.Text, g.tables[c.Protocol])
		for _, objects := range []map[string]bool{t.Touches, t.Writes} {
			for _, name := range g.programs.App.Ignore.Tables {
				delete(objects, c.Protocol+" "+name)
			}
		}
		if len(g.known) < 10*gates.MostIgnored {
			g.known[c] = t
		}
	}
	return t
}

// A hidden is an ignored command that may hide a bug, and the reason. If ruled is true, the command writes a table that
// a rule of `never` reads.
type hidden struct {
	text  string
	ruled bool
}

// hidden returns the ignored commands (`passed`) that may hide a bug, given the steps of the same run. For Redis it
// compares only commands with known keys: many programs implement queues as scripts, whose keys are unknown.
func (g *ignoreGuard) hidden(steps map[gates.Template]bool, passed []gates.Template) (all []hidden) {
	if !g.on() {
		return nil
	}
	touches, writes := maps.Clone(g.rule), map[string]bool{}
	opaque := map[string]string{} // by protocol: a step that may touch any table
	for c := range steps {
		t := g.touch(c)
		if t.Undecided {
			opaque[c.Protocol] = c.Text
		}
		maps.Copy(touches, t.Touches)
		maps.Copy(writes, t.Writes)
	}
	if len(passed) == gates.MostIgnored {
		all = append(all, hidden{text: fmt.Sprintf("%d different commands passed in one run, and later ones were not compared with the steps", gates.MostIgnored)})
	}
	for _, c := range passed {
		t := g.touch(c)
		why := g.why(t, touches, writes)
		if step := opaque[c.Protocol]; why == "" && step != "" && len(t.Touches) > 0 && c.Protocol != "redis" {
			why = fmt.Sprintf("touches %s, and the step %q may touch any table", slices.Min(slices.Collect(maps.Keys(t.Touches))), naming.Short(step))
		}
		if why != "" && !(c.Protocol == "redis" && why == undecided) {
			ruled := func(object string) bool { return g.rule[object] }
			all = append(all, hidden{fmt.Sprintf("%q %s", naming.Short(c.Text), why), slices.ContainsFunc(slices.Collect(maps.Keys(t.Writes)), ruled)})
		}
	}
	slices.SortFunc(all, func(a, b hidden) int { return strings.Compare(a.text, b.text) })
	return all
}

// undecided is the reason that the user sees if the tables of a statement are unknown.
const undecided = "may touch any table"

// why returns how an ignored command conflicts with a step or a rule, or "". The set `touches` contains the objects
// that steps and rules use, and the set `writes` those that steps change.
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
	late := g.programs.Gates.Bypass.Unanswered(longestIgnored)
	if len(late) == 0 || time.Since(g.asked) < time.Second {
		return nil
	}
	g.asked = time.Now()
	for _, c := range late {
		waits, err := g.programs.Backends.Of(c.Conn()).Waiting(ctx, false)
		if err != nil {
			return err
		}
		if waits[c.Conn().ID] {
			return fmt.Errorf("ignore: %q waits for a buyer's lock, so it must be a step; write a pattern in `ignore` that does not match it", naming.Short(c.Text))
		}
	}
	return nil
}
