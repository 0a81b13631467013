package effect

import (
	"slices"
	"sync"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Catalog holds the code that a database runs inside statements although their text does not show it.
// Such code is in functions, procedures, triggers, rules, views, and expressions of tables. All names are
// in lower case and without schema, so tables with the same name in two schemas count as one. Once built,
// a Catalog is safe for concurrent use.
type Catalog struct {
	Dialect  Dialect
	Tables   map[string]*Relation
	Routines map[string][]*Routine
	// Hidden reports that the database user may not read the code. Then every function that is not built
	// in counts as one that may do anything.
	Hidden bool
	// Transactions holds the names of columns with transaction numbers, which differ in each run.
	Transactions map[string]bool

	mu    sync.Mutex
	texts map[string]*Uses // the analyses of at most mostTexts texts
}

// mostTexts limits the memory of a Catalog. A program can send new values in each run, and so a new text each time.
const mostTexts = 4096

// A Relation is a table or a view.
type Relation struct {
	View             string    // the definition of a view; "": a table
	Parts            []string  // tables that share rows with it: partitions, and parents and children by inheritance
	Deletes, Updates []Cascade // foreign keys that change rows of other tables when a row of this table is deleted, or updated
	Related          []string  // the tables that reference it or that it references
	Code             []Code
}

// A Cascade is a foreign key that changes the rows of Table.
type Cascade struct {
	Table string
	Of    []string // the columns that the foreign key references
}

// An Event is a set of kinds of change to a table.
type Event byte

const (
	Inserts Event = 1 << iota
	Updates
	Deletes
	Truncates
)

// events are the changes that a statement makes, by its verb.
var events = map[string]Event{"INSERT": Inserts, "REPLACE": Inserts | Deletes, "UPDATE": Updates, "MERGE": Inserts | Updates | Deletes}

// A Code is code that the server runs when rows of a table change.
type Code struct {
	Name string   // name for reports, such as "trigger number_ticket"; "": an expression
	On   Event    // the changes that start it
	Of   []string // an UPDATE starts it only if it sets one of these columns; none: any column
	Run  *Routine // the function that a trigger calls; nil: Text is the code
	Text string   // its statements, or an expression
	Late bool     // it runs at the end of the transaction
}

// A Routine is a function or a procedure.
type Routine struct {
	Schema, Name  string
	Procedure     bool
	Params        []string // the names of its arguments, in order; none: unknown
	Min, Max      int      // the minimum and maximum number of its arguments
	Text          string   // its statements; "": unknown
	Reads, Writes bool     // if its text is unknown: it may read any table, or write any table
	Fresh         bool     // each of its statements sees the commits up to its own start
	Built         bool     // a built-in function has the same name and arguments, and a call without a schema runs that function
}

// With analyses a text like the function SQL, and adds the effects of the code that the text runs. If c
// is nil, that code is unknown.
func With(c *Catalog, text string, d Dialect) Statement {
	s := SQL(text, d)
	if c == nil {
		return s
	}
	u := c.Uses(text)
	s.Reads = u.Any || len(u.Reads) > 0
	s.TornInside = u.TornInside
	s.Runs, s.Controls, s.Torn, s.Scans = u.Runs != nil, u.Controls, u.Torn, u.Scans
	writes := u.Any || len(u.Writes) > 0
	if !s.Reads {
		s.Inside = Atomic // it reads only temporary tables
	}
	if (s.Runs || s.Compound) && writes && s.Reads {
		s.Inside = Divided
	}
	if s.Runs && (writes || u.Waits) {
		s.Effect, s.passing = schedule.Writes, gated
		s.Alters = s.Alters || writes
	}
	s.Skews = s.Runs && !writes && u.Snapshots > 1
	return s
}

// Uses lists the tables, rows and locks that an SQL text uses, including those of the code that it
// runs.
type Uses struct {
	Reads  []string // tables whose rows it reads without a lock; anyTable stands for all
	Writes []string // tables whose rows it may change
	Locks  []string // tables and views with rows that it locks
	Holds  []string // whole tables that it locks, and NamedLocks if it asks for a named lock
	Any    bool     // it may read and write any table
	Waits  bool     // the code that it runs takes a lock
	// Guard is a lock that the text takes before it reads, and keeps to the end of its transaction. So
	// two texts with the same Guard run one after the other. "" if there is none.
	Guard string
	Scans int // number of statements that read rows without a lock
	// Snapshots is the number of snapshots from which the statements of Scans read. Each statement of a
	// routine takes its own snapshot, except in a STABLE function, which uses that of its caller.
	Snapshots int
	Torn      bool // it commits some of its writes earlier than others
	// TornInside is the value of Torn for a text that begins in an open transaction.
	TornInside bool
	// Orders lists the locks of each transaction that takes several locks, in order. OrdersInside does so
	// for a text that begins in an open transaction.
	Orders, OrdersInside [][]lock

	Controls bool     // it begins or ends a transaction
	Runs     []string // the code that it runs, for people: "function take_job"
}

const anyTable = "*"

// NamedLocks stands for every lock that GET_LOCK, or pg_advisory_lock and its variants, can take.
const NamedLocks = "a named lock"

// Uses returns the Uses of a text. Callers share the result, and must not change it.
func (c *Catalog) Uses(text string) *Uses {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.texts[text]; known != nil {
		return known
	}
	u := &Uses{Any: true, Scans: unlimited}
	if t, rest := tokens(text, c.Dialect, c.Dialect == MySQL); len(text) <= longest && rest == whole {
		u = walked(c, t)
	}
	if c.texts == nil || len(c.texts) == mostTexts {
		c.texts = map[string]*Uses{}
	}
	c.texts[text] = u
	return u
}

// Meets reports whether the other text may change rows that this text reads without a lock. If `locked`
// is true, two texts with the same Guard do not meet, since one waits for the other.
func (u *Uses) Meets(other *Uses, locked bool) bool {
	switch {
	case locked && u.Guard != "" && u.Guard == other.Guard:
		return false
	case u.Any || slices.Contains(u.Reads, anyTable):
		return other.Any || len(other.Writes) > 0
	case other.Any:
		return len(u.Reads) > 0
	}
	return slices.ContainsFunc(u.Reads, func(name string) bool { return slices.Contains(other.Writes, name) })
}

// Shares reports whether both texts use a common table.
func (u *Uses) Shares(other *Uses) bool {
	ours, theirs := slices.Concat(u.Reads, u.Writes), slices.Concat(other.Reads, other.Writes)
	return u.Any || other.Any || slices.Contains(ours, anyTable) || slices.Contains(theirs, anyTable) ||
		slices.ContainsFunc(ours, func(name string) bool { return slices.Contains(theirs, name) })
}
