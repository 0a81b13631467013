package dialect

import "strings"

// Postgres is the name of PostgreSQL, and of what speaks its protocol.
const Postgres = "postgres"

// The two other isolation levels of PostgreSQL, where they are the default of the
// sessions: the catalogue promises otherwise there.
const (
	PostgresRepeatableRead = Postgres + "-repeatable-read"
	PostgresSerializable   = Postgres + "-serializable"
)

// PostgresAt is the name of PostgreSQL at a default_transaction_isolation.
func PostgresAt(isolation string) string {
	if isolation == "read committed" || isolation == "read uncommitted" { // the latter is the former there
		return Postgres
	}
	return Postgres + "-" + strings.ReplaceAll(isolation, " ", "-")
}

// postgres shows a commit when its log is on the disk and, where a replica is waited for,
// there (xact.c: RecordTransactionCommit flushes and waits, and ProcArrayEndTransaction
// follows). But a wait for a replica can be cut, by a cancel or a time-out, and the commit
// is shown all the same (syncrep.c, SyncRepWaitForLSN).
func postgres() Dialect {
	return Dialect{
		Name: Postgres, RowLocks: true, LocksInTransaction: true, ShowsEarly: true,
		TakesWrites: "SELECT current_setting('transaction_read_only') = 'off'",
		OpenTransactions: `SELECT format('connection %s has been idle for %s s in a transaction; its last statement: %s', pid, extract(epoch FROM now() - state_change)::int, query)
			FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
		// Only those of this database. A wait for a row is one for the transaction that has
		// written it, or for the row's own turn.
		RowWaits: `SELECT count(*) AS value FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event IN ('transactionid', 'tuple') AND cardinality(pg_blocking_pids(pid)) > 0`,
	}
}
