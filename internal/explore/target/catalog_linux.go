package target

import (
	"context"
	"database/sql"
	"slices"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// The search of a long program on PostgreSQL explores only the orders of commands that use the same rows.
// At READ COMMITTED, a plain SELECT sees committed rows only. So it commutes with a change in an open
// transaction, and with a COMMIT of other rows. A footprint follows from the text of a statement and from
// the catalog. If they do not decide it, a command has no footprint, and commutes with nothing.
//
// MariaDB has none: InnoDB also locks the gaps between rows.

// longProgram is the number of steps of all buyers alone above which the search uses footprints. Below
// it, a search is complete without them.
const longProgram = 100

// byRows reports whether the search may use footprints. Each buyer needs an instance of its
// own, whose commands reach the server one after the other. Footprints do not describe events, statements
// that are held inside the server, and transactions with ignored commands.
func (x *Runner) byRows() bool {
	return !x.shared && !x.overlap && len(x.wanted) == 0 && !x.guard.on()
}

// A catalog describes the database for footprints. The explorer reads it once.
type catalog struct {
	tables  serverstate.Tables
	shapes  serverstate.Shapes
	changes string           // see serverstate.ChangedQuery
	state   string           // see serverstate.CatalogState
	ordered map[string]bool  // tables in which the order of written rows may show, see Draws
	ruled   map[string]bool  // names in rules: in such a table the order of new rows may show, in such a column that of changes
	all     bool             // it may show in each table
	last    map[string]int64 // see sequences
	prints  map[string]*schedule.Footprint
}

// readCatalog reads the catalog of the program's PostgreSQL; nil if there is none.
func readCatalog(ctx context.Context, s *app.Servers, never []string) (*catalog, error) {
	db := s.SQL("postgres")
	if db == nil {
		return nil, nil
	}
	bounded, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	c := &catalog{ordered: map[string]bool{}, ruled: map[string]bool{}, prints: map[string]*schedule.Footprint{}}
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

// one returns one pointer for each footprint.
func (c *catalog) one(f schedule.Footprint) *schedule.Footprint {
	key := f.String()
	if c.prints[key] == nil {
		c.prints[key] = &f
	}
	return c.prints[key]
}

// meeting returns the tables in which one command reads rows that the other writes.
func meeting(reads, writes usage) (tables []string) {
	for _, a := range reads.all {
		for _, b := range writes.all {
			if a.Use == schedule.Sees && b.Use == schedule.Shows && a.Meets(b) && !slices.Contains(tables, a.Table) {
				tables = append(tables, a.Table)
			}
		}
	}
	return tables
}

// rules notes what the rules of `never` read.
func (c *catalog) rules(never []string) {
	for _, query := range never {
		names := effect.Mentions(query, effect.Postgres).Names
		for _, name := range slices.Concat(effect.Relations(query, effect.Postgres), names) {
			c.ruled[name] = true
		}
	}
}

// learn compares the rows that the buyers use alone. It counts the commands of each buyer that may meet
// another buyer's. It also notes the tables in which the order of written rows may show. Their keys, their
// times and the result of a SELECT without ORDER BY show it.
func (c *catalog) learn(alone []Alone, short bool) {
	c.all = c.all || short
	for i := range alone {
		for _, one := range alone[i].used {
			c.all = c.all || one.ids && c.ruled[one.table]
			meets := false
			for k := range alone {
				if k == i {
					continue
				}
				for _, other := range alone[k].used {
					meets = meets || one.now == nil || other.now == nil || !one.now.Commutes(*other.now)
					for _, table := range meeting(one.usage, other.usage) {
						c.ordered[table] = true
						c.all = c.all || other.ids
					}
				}
			}
			if meets {
				alone[i].Meets++
			}
		}
	}
}

// sequences compares the sequences with those of the last call. If one has gone back, the reset gives new
// rows the same keys in each run, and the program may decide by them: then their order matters.
func (c *catalog) sequences(ctx context.Context, db *sql.DB) error {
	now, hidden, err := serverstate.Sequences(ctx, db)
	for name, last := range now {
		c.all = c.all || last < c.last[name]
	}
	c.last, c.all = now, c.all || hidden
	return err
}
