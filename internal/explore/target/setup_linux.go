package target

import (
	"regexp"
	"slices"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A pool may open a connection by itself, for example every 30 seconds, and sets it up: SET autocommit=1.
// The clock would decide at which step that comes. Before its first other command, a connection has no
// transaction, so such a command changes nothing that another connection can see. It passes at once, and
// is no step, if its buyer does not wait for it.

// setting matches a statement that sets variables.
var setting = regexp.MustCompile(`(?i)^\s*SET\s`)

// isSetUp reports whether a command only sets up its connection, if it is among the first there. No other
// connection notices a local one.
func isSetUp(c *wire.Command) bool {
	_, sql := effect.DialectOf(c.Conn().Protocol)
	return sql && c.Gated && c.Effect == schedule.Local && setting.MatchString(c.Text)
}

// setUp lets the commands pass that set up connections for which no buyer waits, and reports whether there
// are any. It is called with gateTable.mu held.
func (r settling) setUp() (passed bool) {
	f := r.x.gateTable
	if r.x.shared { // the buyer of a command is not certain
		return false
	}
	for _, o := range slices.Clone(f.held) {
		if !o.setsUp || o.noted || o.behind || r.waitsFor(o) { // a command that was offered as a step remains one
			continue
		}
		f.held = slices.DeleteFunc(f.held, func(other *op) bool { return other == o })
		delete(f.byCmd, o.Command)
		r.current, passed = o.buyer, true
		f.happened()
		f.handed, f.handedTo = o.Conn().Program(), o.buyer
		o.Release()
		o.Deliver()
	}
	return passed
}

// waitsFor reports whether the buyer may be inside its program until the command is answered: it has no
// answer, and no command on another connection.
func (r settling) waitsFor(o *op) bool {
	f := r.x.gateTable
	other := func(other *op) bool { return other.buyer == o.buyer && other.Conn() != o.Conn() }
	return r.buyer(o.buyer).alive && !slices.ContainsFunc(slices.Concat(f.held, f.flying, f.uncommitted, f.answered), other)
}
