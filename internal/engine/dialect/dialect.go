// Package dialect describes the differences between SQL databases for packages that send
// statements: which locks exist, and when other sessions see a commit.
//
// A database is one short file and one line in All. Other packages have their own file for each database:
// internal/engine opens it, internal/testbed/localserver starts it, internal/engine/sqlerror classifies its
// errors. No package compares the names of databases.
package dialect

import (
	"slices"
	"strings"
)

// A Dialect describes the behavior of one kind of database.
type Dialect struct {
	// Name is the name in gorm, of the folder with the migrations, and in the catalogue of strategies.
	Name string

	// RowLocks means that SELECT ... FOR UPDATE locks the row that it reads. Otherwise BEGIN
	// IMMEDIATE locks the whole file.
	RowLocks bool

	// RowWaits is a query that counts the statements that wait for a row, in the column Value. It must run on
	// another connection than these statements. "" means that the database does not show them.
	RowWaits string

	// TakesWrites is a query that reports whether the server accepts writes. A replica or a former primary
	// does not. "" means that the shop does not ask.
	TakesWrites string

	// OpenTransactions is a query that describes open transactions whose connections are idle, one in each
	// row. "" means that the database does not show them.
	OpenTransactions string

	// LocksInTransaction means that a named lock ends with its transaction. Otherwise it belongs to
	// the session until it is released.
	LocksInTransaction bool

	// ShowsEarly means that other sessions may see a commit before it is on the disk or on a
	// replica. A crash of the server can then undo data that they have read.
	ShowsEarly bool
}

// NamedLocks is the capability to lock a name for one buyer. A strategy lists the capabilities that it needs.
// A database lists those that it lacks.
const NamedLocks = "named-locks"

// SkipLocked is the capability of SELECT ... FOR UPDATE SKIP LOCKED, which skips rows that other
// transactions have locked.
const SkipLocked = "skip-locked"

// CurrentReads is the capability of a single SELECT without a lock to read exactly the committed data. Without
// this capability, a read may return rolled-back data, or data from before a restock.
const CurrentReads = "current-reads"

// All returns the databases that the shop supports.
func All() []Dialect { return []Dialect{mysql(), postgres(), sqlite()} }

// Kind returns the dialect part of a database's name. The name may also contain the isolation level.
func Kind(database string) string {
	kind, _, _ := strings.Cut(database, "-")
	return kind
}

// Of returns the dialect of an open database, a *gorm.DB. An unknown database has row locks and no
// other capability.
func Of(db interface{ Name() string }) Dialect {
	all := All()
	if i := slices.IndexFunc(all, func(d Dialect) bool { return d.Name == db.Name() }); i >= 0 {
		return all[i]
	}
	return Dialect{Name: db.Name(), RowLocks: true}
}
