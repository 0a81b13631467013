// Package dialect has what differs between SQL databases for the rooms that send
// statements: which locks there are, and what a COMMIT shows to others when.
//
// A database is one short file and one line in All. Other rooms have a file of their
// own for what only they need of it: internal/engine opens it, internal/testbed/localserver
// starts it, internal/engine/sqlerror reads its errors. None compares names.
package dialect

import (
	"slices"
	"strings"
)

// A Dialect is what a kind of database does.
type Dialect struct {
	// Name is what gorm's dialector calls it. It is also its folder in migrations, and
	// the word in the promises of the catalogue.
	Name string

	// RowLocks: SELECT ... FOR UPDATE locks the row that it reads. Where it does not,
	// BEGIN IMMEDIATE locks the whole file.
	RowLocks bool

	// RowWaits is the query that counts the statements that wait for a row, in its column
	// Value; "" where the database does not show them. It is asked on a connection beside
	// those that wait.
	RowWaits string

	// TakesWrites is the query that asks whether the server takes writes, as a replica or a
	// primary of yesterday does not; "" where it is not asked.
	TakesWrites string

	// OpenTransactions is the query that describes the transactions of idle connections, one per
	// row; "" if the database does not show them.
	OpenTransactions string

	// LocksInTransaction: a named lock is one of the transaction that asks for it, and
	// ends with it. Else it is one of the session, until it is given back.
	LocksInTransaction bool

	// ShowsEarly: others may see a commit before it is where it was to be when COMMIT
	// returns, on the disk or on a replica, so a server that is lost can take back what
	// they have read.
	ShowsEarly bool
}

// NamedLocks: the server locks a name for one buyer. It is a capability, by which a
// strategy says what it needs and a database what it lacks.
const NamedLocks = "named-locks"

// SkipLocked: SELECT ... FOR UPDATE SKIP LOCKED leaves out the rows that others have
// locked.
const SkipLocked = "skip-locked"

// CurrentReads: a SELECT of its own, without a lock, reads what is committed, and all of
// it. Where that is lacking, what was rolled back, or was before a restock, may be read.
const CurrentReads = "current-reads"

// All are the databases that the shop knows.
func All() []Dialect { return []Dialect{mysql(), postgres(), sqlite()} }

// Kind is the dialect of a database as the promises name it, with its isolation level or
// without.
func Kind(database string) string {
	kind, _, _ := strings.Cut(database, "-")
	return kind
}

// Of returns the dialect of an open database, a *gorm.DB. One that this room does not
// know has row locks and nothing else.
func Of(db interface{ Name() string }) Dialect {
	all := All()
	if i := slices.IndexFunc(all, func(d Dialect) bool { return d.Name == db.Name() }); i >= 0 {
		return all[i]
	}
	return Dialect{Name: db.Name(), RowLocks: true}
}
