package dialect

// Postgres is the name of PostgreSQL, and of what speaks its protocol.
const Postgres = "postgres"

// postgres shows a commit when its log is on the disk and, where a replica is waited
// for, there (xact.c: RecordTransactionCommit flushes and waits, and
// ProcArrayEndTransaction follows). synchronous_commit = off takes that back.
func postgres() Dialect { return Dialect{Name: Postgres, RowLocks: true, LocksInTransaction: true} }
