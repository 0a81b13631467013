package target

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// foresee compares an executed command with the others' so far. If one has read a row that another buyer
// has inserted, or a value that it has generated, then the order of such values may show.
func (t *tracker) foresee(at int) {
	for _, other := range t.used[:at] {
		if other.buyer != t.used[at].buyer {
			t.compare(t.used[at].usage, other.usage)
			t.compare(other.usage, t.used[at].usage)
		}
	}
}

func (t *tracker) compare(reads, writes usage) {
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

// unforeseen returns why the footprints of a run were wrong; "" if nothing shows that.
func (t *tracker) unforeseen(ctx context.Context) (string, error) {
	switch {
	case t.catalog == nil:
		return "", nil
	case t.why != "":
		return t.why, nil
	case foreign(t.used, t.sets) != "":
		return fmt.Sprintf("a buyer may change a row of %s that another buyer inserted, so commands on such rows may not commute", foreign(t.used, t.sets)), nil
	}
	bounded, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	state, err := serverstate.CatalogState(bounded, t.r.x.servers.SQL("postgres"))
	switch {
	case err != nil:
		return "", err
	case state != t.state:
		return "the program changed a trigger, a view, a rule, a constraint or an index, so commands may use other rows than before", nil
	case t.wrote == nil:
		return "", nil
	}
	t.r.x.gateTable.mu.Lock()
	passed := slices.Clone(t.r.x.gateTable.noted)
	t.r.x.gateTable.mu.Unlock()
	for _, text := range passed {
		for _, name := range effect.Relations(text, effect.Postgres) {
			t.wrote[name] = true
		}
	}
	tables, err := serverstate.Changed(bounded, t.r.x.servers.SQL("postgres"), t.changes, t.since)
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
