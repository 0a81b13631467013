package backend

import (
	"context"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/load/pulse"
)

// Catalogs hold, by protocol, the code inside each database: triggers, functions and procedures. Before the first call
// of Read, the code is unknown. Catalogs are safe for concurrent use.
type Catalogs map[string]*atomic.Pointer[effect.Catalog]

// NewCatalogs returns catalogs of unknown code.
func NewCatalogs() Catalogs {
	return Catalogs{"mysql": {}, "postgres": {}}
}

// Read reads the code of the databases. If that fails, the earlier result stays. Without an earlier result, the code is
// unknown, so any statement may run any code.
func (c Catalogs) Read(ctx context.Context, servers *app.Servers) {
	for protocol, to := range c {
		if db := servers.SQL(protocol); db != nil {
			bounded, cancel := pulse.WithTimeout(ctx, serverstate.CatalogTimeout)
			found, err := serverstate.ReadCatalog(bounded, db, protocol)
			if err == nil {
				to.Store(found)
			} else if to.Load() == nil {
				d, _ := effect.DialectOf(protocol)
				to.Store(&effect.Catalog{Dialect: d, Hidden: true})
			}
			cancel()
		}
	}
}

var defines = regexp.MustCompile(`(?i)^\s*(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+|UNLOGGED\s+|MATERIALIZED\s+)?(?:FUNCTION|PROCEDURE|(?:CONSTRAINT\s+)?TRIGGER|RULE|VIEW|TABLE|DEFINER|ALGORITHM)\b`)

// Defines reports whether a statement may change the code inside its database, as CREATE TRIGGER does.
func Defines(sql string) bool { return defines.MatchString(sql) }

// noSQL matches a text that was cut, or that describes a command without its SQL.
var noSQL = regexp.MustCompile(`\.\.\.( \(\d+ (bytes|more)\))?$|\.\.\. \(\d+ bytes\);|^(BULK EXECUTE|EXECUTE statement|FUNCTION CALL|COPY data|FETCH|command|message)\b`)

// known returns the code of the database that executes a command. It returns nil if the code is unknown, or for Redis.
func (c Catalogs) known(o *gates.Op) *effect.Catalog {
	if of := c[o.Conn().Protocol]; of != nil {
		return of.Load()
	}
	return nil
}

// Uses returns the tables, rows and locks that a command at a database uses.
func (c Catalogs) Uses(o *gates.Op) *effect.Uses {
	known, text := c.known(o), o.InFull()
	if known == nil || noSQL.MatchString(text) {
		return &effect.Uses{Any: true}
	}
	return known.Uses(text)
}

// Related returns the tables that a foreign key connects with the given table.
func (c Catalogs) Related(o *gates.Op, table string) []string {
	if known := c.known(o); known != nil && known.Tables[table] != nil {
		return known.Tables[table].Related
	}
	return nil
}

// IsView reports whether the database of a command has a view of that name.
func (c Catalogs) IsView(o *gates.Op, name string) bool {
	known := c.known(o)
	return known != nil && known.Tables[name] != nil && known.Tables[name].View != ""
}

// Divides reports whether the other command may change rows that o reads, before o is complete. Both are at one
// database.
func (c Catalogs) Divides(o, other *gates.Op) bool {
	locked := o.Conn().Protocol == "mysql" || !o.Snapshots
	return c.Uses(o).Meets(c.Uses(other), locked)
}

// Crosses reports whether two commands at one database, each of several statements, lock two tables or rows in opposite
// orders. Two equal texts lock in the same order.
func (c Catalogs) Crosses(o, other *gates.Op) bool {
	return o.InFull() != other.InFull() && c.Uses(o).Crosses(c.Uses(other), o.Within, other.Within)
}

// Share reports whether two commands at one database may use rows of the same table. They may do so through a view, a
// foreign key, or code inside the database.
func (c Catalogs) Share(o, other *gates.Op) bool { return c.Uses(o).Shares(c.Uses(other)) }

// Runs returns a text such as ", which runs function take_job". It returns "" if the command's own text shows
// everything.
func (c Catalogs) Runs(o *gates.Op) string {
	if all := c.Uses(o).Runs; o.Hidden && len(all) > 0 {
		return ", which runs " + strings.Join(all[:min(len(all), 3)], ", ")
	}
	return ""
}

// Transactions returns the transaction numbers in an answer, which differ in each run.
func (c Catalogs) Transactions(o *gates.Op) (all []string) {
	known := c.known(o)
	if known == nil {
		return nil
	}
	for _, row := range o.Answer.Rows {
		for _, cell := range row {
			if known.Transactions[cell.Column] && effect.WholeNumber.MatchString(cell.Value) {
				all = append(all, cell.Value)
			}
		}
	}
	return all
}
