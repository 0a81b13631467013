package rows

import (
	"context"
	"database/sql"
	"slices"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/load/pulse"
)

// A Catalog describes the tables of a database. It determines each command's footprint: the rows that the command
// uses. The explorer reads it once.
type Catalog struct {
	tables  serverstate.Tables
	shapes  serverstate.Shapes
	changes string           // query that lists the tables changed since a transaction (serverstate.Changed)
	state   string           // text that differs after a change of the schema (serverstate.CatalogState)
	ordered map[string]bool  // tables in which other buyers may see the order of written rows
	ruled   map[string]bool  // tables and columns in the user's rules; a rule's result may depend on the order of new rows, or of changes to a column
	all     bool             // any table may show the order of its rows
	last    map[string]int64 // the value of each sequence at the last call of Sequences
	prints  map[string]*schedule.Footprint
}

// Read reads the catalog of a PostgreSQL database. Without such a database, it returns nil. The parameter `never`
// lists the user's rules, each an SQL query.
func Read(ctx context.Context, db *sql.DB, never []string) (*Catalog, error) {
	if db == nil {
		return nil, nil
	}
	bounded, cancel := pulse.WithTimeout(ctx, serverstate.CatalogTimeout)
	defer cancel()
	c := &Catalog{ordered: map[string]bool{}, ruled: map[string]bool{}, prints: map[string]*schedule.Footprint{}}
	var err error
	if c.tables, err = serverstate.ReadTables(bounded, db, "postgres"); err != nil {
		return nil, err
	}
	if c.shapes, err = serverstate.ReadShapes(bounded, db); err != nil {
		return nil, err
	}
	if c.state, err = serverstate.CatalogState(bounded, db); err != nil {
		return nil, err
	}
	if c.changes, err = serverstate.ChangedQuery(bounded, db); err != nil {
		return nil, err
	}
	c.rules(never)
	return c, err
}

// intern returns one pointer for all equal footprints.
func (c *Catalog) intern(f schedule.Footprint) *schedule.Footprint {
	key := f.String()
	if c.prints[key] == nil {
		c.prints[key] = &f
	}
	return c.prints[key]
}

// meeting returns the tables with rows that one command may read and the other may write.
func meeting(reads, writes Usage) (tables []string) {
	for _, a := range reads.all {
		for _, b := range writes.all {
			if a.Use == schedule.Sees && b.Use == schedule.Shows && a.Meets(b) && !slices.Contains(tables, a.Table) {
				tables = append(tables, a.Table)
			}
		}
	}
	return tables
}

// rules records the tables and columns that the user's rules name.
func (c *Catalog) rules(never []string) {
	for _, query := range never {
		names := effect.Mentions(query, effect.Postgres).Names
		for _, name := range slices.Concat(effect.Relations(query, effect.Postgres), names) {
			c.ruled[name] = true
		}
	}
}

// Learn compares the rows that buyers use when each buyer runs by itself. It returns, for each buyer, the number of
// commands that may use the same rows as another buyer's. Learn also records the tables in which another buyer may see
// the order of written rows: in keys, in times, or in the result of a SELECT without ORDER BY. If `tooShort` is true,
// a server-generated number was too short to be recognized. Then any table may show the order of its rows.
func (c *Catalog) Learn(alone [][]Used, tooShort bool) (meets []int) {
	c.all = c.all || tooShort
	meets = make([]int, len(alone))
	for i := range alone {
		for _, one := range alone[i] {
			c.all = c.all || one.ids && c.ruled[one.table]
			met := false
			for k := range alone {
				if k == i {
					continue
				}
				for _, other := range alone[k] {
					met = met || one.Now == nil || other.Now == nil || !one.Now.Commutes(*other.Now)
					for _, table := range meeting(one.Usage, other.Usage) {
						c.ordered[table] = true
						c.all = c.all || other.ids
					}
				}
			}
			if met {
				meets[i]++
			}
		}
	}
	c.prints = map[string]*schedule.Footprint{}
	return meets
}

// Sequences compares the sequences with those of the last call. If the reset between two runs has set a sequence back,
// new rows get the same keys in each run. The program may depend on these keys, so the order of new rows matters.
func (c *Catalog) Sequences(ctx context.Context, db *sql.DB) error {
	now, hidden, err := serverstate.Sequences(ctx, db)
	for name, last := range now {
		c.all = c.all || last < c.last[name]
	}
	c.last, c.all = now, c.all || hidden
	return err
}
