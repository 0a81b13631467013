// Package rows determines the rows that each command of a program uses, so that commands on different rows commute.
//
//	Catalog: the tables, keys and rules of the database, read once
//	    |
//	Tracker: the transactions of one run; each command gets a Usage
//
// In a long program on PostgreSQL, the search reorders only commands that use the same rows. At READ COMMITTED, a plain
// SELECT sees only committed rows. So the SELECT commutes with a change in an open transaction, and with a COMMIT of
// other rows. The text of a statement and the catalog determine its footprint, the rows that it uses. If they do not
// suffice, the command has no footprint, and commutes with no other command.
//
// For MariaDB there are no footprints, since InnoDB also locks the gaps between rows.
package rows

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A Command is a command of a run, with the run's knowledge about it.
type Command struct {
	*wire.Command
	Buyer int    // the sender
	Timed bool   // a timer of the program caused it, not an answer to the buyer
	Usage *Usage // set by the tracker
}

// Names recognizes the values that differ between runs.
type Names interface {
	// Masked returns the text with a name in place of each value that differs between runs.
	Masked(text string) string
	// Known returns the name of a value; "" if it has none.
	Known(value string) string
}

// A Tracker tracks the rows that the transactions of one run use. Only one goroutine may use it.
type Tracker struct {
	*Catalog
	names  Names
	buyers int  // number of buyers in the run
	raw    bool // footprints contain values, not their names, since they are compared only within this run
	open   map[*wire.Conn]*transaction
	rows   map[int]images // by buyer
	sets   []cellChange
	used   []Used
	wrote  map[string]bool // tables that commands name; nil: an unknown table may have changed
	since  int64           // PostgreSQL's next transaction number when the run began
	why    string          // why the footprints so far were wrong; "": no sign of that
}

// A transaction records the rows that an open transaction has used.
type transaction struct {
	uses    schedule.Footprint
	unknown bool
	failed  bool // one of its commands has failed
	buyer   int
}

// NewTracker returns the tracker of a run with this number of buyers. Without a catalog, no command has a footprint. If
// `raw` is true, footprints keep values that differ between runs. Such footprints can be compared only within the run.
func NewTracker(c *Catalog, names Names, buyers int, raw bool) *Tracker {
	return &Tracker{Catalog: c, names: names, buyers: buyers, raw: raw, open: map[*wire.Conn]*transaction{}, rows: map[int]images{}, wrote: map[string]bool{}}
}

// Begin records the first transaction number of the run.
func (t *Tracker) Begin(ctx context.Context, db *sql.DB) (err error) {
	if t.Catalog != nil {
		t.since, err = serverstate.NextTransaction(ctx, db)
	}
	return err
}

// Used returns the commands that were executed.
func (t *Tracker) Used() []Used { return t.used }

// Why returns the reason why the footprints so far were wrong; "" if there is no sign of that.
func (t *Tracker) Why() string { return t.why }

// hasName matches the name of a server-generated value.
var hasName = regexp.MustCompile(`<[\w-]+:\w+>`)

// sequence matches functions that reveal the order of their calls.
var sequence = regexp.MustCompile(`(?i)\b(?:nextval|currval|setval|lastval)\b`)

// changing matches a statement that may contain a value that differs in each run.
var changing = regexp.MustCompile(`(?i)\b(?:now|current_\w+|localtime\w*|\w+_timestamp|timeofday|random|default|\w*uuid\w*)\b`)

// Arrived determines the rows that commands use, before the commands are sent to the server.
func (t *Tracker) Arrived(commands []Command) {
	for _, o := range commands {
		*o.Usage = t.usage(o)
		if o.Usage.Now != nil && !t.raw {
			o.Usage.Key = o.Usage.Now.String()
		}
	}
}

// usage returns the rows that a command uses. The command has arrived and was not sent yet.
func (t *Tracker) usage(o Command) (u Usage) {
	if t.Catalog == nil || o.Conn().Protocol != "postgres" || o.Snapshots || o.Compound || o.Hidden {
		return u
	}
	text := o.InFull()
	masked := t.names.Masked(text)
	m := effect.Mentions(text, effect.Postgres)
	u.at = len(t.used)
	u.ids = hasName.MatchString(masked)
	if controls(m, text) {
		u.Now = t.control(o, m)
		return u
	}
	if m.Undecided || m.Waits || m.Controls || !o.InTransaction && !o.OwnTransaction || sequence.MatchString(text) {
		return u
	}
	all, decided := t.uses(&u, o, text, masked, m)
	if !decided {
		return Usage{ids: u.ids}
	}
	u.all = all
	now := slices.Clone(all)
	if !o.OwnTransaction {
		now = slices.DeleteFunc(now, func(one schedule.Touch) bool { return one.Use == schedule.Shows })
	}
	if tx := t.open[o.Conn()]; tx != nil {
		now = now.Holding(tx.uses, tx.unknown || t.buyers > 2) // three buyers may wait in a cycle, which two footprints do not show
	}
	u.Now = t.intern(now)
	return u
}

// controls reports whether the text is a single statement that begins, ends or sets up a transaction.
func controls(m effect.Mention, text string) bool {
	return m.Controls && !strings.Contains(strings.TrimSuffix(strings.TrimSpace(text), ";"), ";")
}

// control returns the footprint of a command that begins, ends or sets up a transaction.
func (t *Tracker) control(o Command, m effect.Mention) *schedule.Footprint {
	tx := t.open[o.Conn()]
	switch {
	case !o.InTransaction && !o.OwnTransaction: // an earlier command may not be answered yet
		return nil
	case tx == nil, !m.Ends && !rollsBack.MatchString(o.Text):
		return t.intern(schedule.Footprint{})
	case tx.unknown:
		return nil
	}
	return t.intern(slices.Clone(tx.uses))
}

// rollsBack matches a statement that undoes changes, such as ROLLBACK TO SAVEPOINT.
var rollsBack = regexp.MustCompile(`(?i)\b(?:ROLLBACK|ABORT)\b`)

// uses returns the footprint of a statement; false if it is unknown.
func (t *Tracker) uses(u *Usage, o Command, text, masked string, m effect.Mention) (all schedule.Footprint, decided bool) {
	named := map[string]bool{}
	parts := false
	for _, name := range m.Names {
		if table := t.tables[name]; table != nil {
			named[name] = true
			parts = parts || len(table.Parts) > 0
			for _, part := range table.Parts {
				named[part] = true
			}
			if table.Opaque || m.Alters && (table.Fires || t.shapes[name] == nil || t.shapes[name].Late) {
				return nil, false
			}
		}
	}
	a, understood := effect.Accesses(text, t.shapes.Tells)
	if !understood || parts {
		for name := range named {
			all = append(all, schedule.Touch{Use: schedule.Sees, Table: name})
			if m.Alters {
				all = append(all, t.anyRow(name, map[string]bool{})...)
			}
		}
		return all, true
	}
	for _, r := range append(slices.Clone(a.Reads), a.Finds) {
		if r.Table != "" && t.shapes[r.Table] == nil {
			return nil, false
		}
	}
	a = naming{t}.named(a, masked)
	for _, r := range a.Reads {
		fixed := r.Fixed
		all = append(all, schedule.Touch{Use: schedule.Sees, Table: r.Table, Fixed: fixed})
		if a.Locks {
			all = append(all, schedule.Touch{Use: schedule.Locks, Table: r.Table, Keys: true, Fixed: fixed}) // FOR UPDATE also blocks the checks of foreign keys
		}
	}
	if a.None {
		return all, true
	}
	u.table, u.finds, u.new = a.Finds.Table, a.Finds, a.Sets
	if t.all || t.ordered[u.table] {
		all = append(all, schedule.Touch{Use: schedule.Draws, Table: u.table})
	}
	switch a.Verb {
	case "INSERT":
		for _, values := range a.Sets {
			all = append(all, t.inserts(u.table, t.row(u.table, values))...)
		}
	case "UPDATE":
		varies := strings.Contains(masked, "<") || changing.MatchString(text)
		for column, value := range a.Sets[0] {
			if varies && (value == nil || *value == effect.Default) && t.ruled[u.table] && t.ruled[strings.ToLower(column)] {
				all = append(all, schedule.Touch{Use: schedule.Draws, Table: u.table})
			}
		}
		all = append(all, t.updates(a, t.merged(u, o, a.Finds.Fixed))...)
	case "DELETE":
		fixed := t.merged(u, o, a.Finds.Fixed)
		all = append(all, schedule.Touch{Use: schedule.Locks, Table: u.table, Keys: true, Fixed: fixed}, schedule.Touch{Use: schedule.Shows, Table: u.table, Keys: true, Fixed: fixed})
		all = append(all, t.claims(u.table, nil, fixed)...)
		for _, kid := range t.shapes[u.table].Kids {
			all = append(all, t.anyRow(kid, map[string]bool{})...)
		}
	}
	return all, true
}
