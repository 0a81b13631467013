package rows

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/load/pulse"
)

// foresee compares an executed command with the earlier commands of other buyers. If one has read a row that another
// buyer wrote, the program may depend on the order of such commands. Then foresee records the reason.
func (t *Tracker) foresee(at int) {
	for _, other := range t.used[:at] {
		if other.buyer != t.used[at].buyer {
			t.compare(t.used[at].Usage, other.Usage)
			t.compare(other.Usage, t.used[at].Usage)
		}
	}
}

func (t *Tracker) compare(reads, writes Usage) {
	if t.why != "" || t.raw {
		return
	}
	for _, table := range meeting(reads, writes) {
		switch {
		case !t.all && !t.ordered[table]:
			t.why = fmt.Sprintf("a buyer alone reads no row of %s that another buyer writes, but in a schedule one does, so the order of these writes may matter", table)
		case writes.ids && !t.all:
			t.why = fmt.Sprintf("in a schedule a buyer reads a generated value in %s that another buyer has written, so the order of such values may matter", table)
		}
	}
}

// Unforeseen returns the reason why the footprints (the rows of each command) of a run were wrong; "" if there is no
// sign of that. The parameter `passed` lists the commands that ran without being steps of the schedule.
func (t *Tracker) Unforeseen(ctx context.Context, db *sql.DB, passed []string) (string, error) {
	switch {
	case t.Catalog == nil:
		return "", nil
	case t.why != "":
		return t.why, nil
	case foreign(t.used, t.sets) != "":
		return fmt.Sprintf("a buyer may change a row of %s that another buyer inserted, so commands on such rows may not commute", foreign(t.used, t.sets)), nil
	}
	bounded, cancel := pulse.WithTimeout(ctx, serverstate.CatalogTimeout)
	defer cancel()
	state, err := serverstate.CatalogState(bounded, db)
	switch {
	case err != nil:
		return "", err
	case state != t.state:
		return "the program changed a trigger, a view, a rule, a constraint or an index, so commands may use other rows than before", nil
	case t.wrote == nil:
		return "", nil
	}
	for _, text := range passed {
		for _, name := range effect.Relations(text, effect.Postgres) {
			t.wrote[name] = true
		}
	}
	tables, err := serverstate.Changed(bounded, db, t.changes, t.since)
	if err != nil {
		return "", err
	}
	for _, table := range tables {
		if !t.wrote[table] {
			return fmt.Sprintf("%s changed, although no command of a buyer names it", cmp.Or(table, "a table")), nil
		}
	}
	return "", nil
}
