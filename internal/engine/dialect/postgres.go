package dialect

import "strings"

// Postgres is the name of PostgreSQL and of other servers that speak its protocol.
const Postgres = "postgres"

// Names of PostgreSQL with other default isolation levels. The catalogue of strategies lists them separately.
const (
	PostgresRepeatableRead = Postgres + "-repeatable-read"
	PostgresSerializable   = Postgres + "-serializable"
)

// PostgresAt returns the name of PostgreSQL with this default_transaction_isolation.
func PostgresAt(isolation string) string {
	if isolation == "read committed" || isolation == "read uncommitted" { // in PostgreSQL both levels are the same
		return Postgres
	}
	return Postgres + "-" + strings.ReplaceAll(isolation, " ", "-")
}

// postgres returns the dialect of PostgreSQL. Other sessions see a commit when its log is on the disk and,
// with synchronous replication, on the replica (xact.c: RecordTransactionCommit, then
// ProcArrayEndTransaction). A cancel or a time-out can end the wait for the replica. Then the commit is
// visible without the replica (syncrep.c, SyncRepWaitForLSN).
func postgres() Dialect {
	return Dialect{
		Name: Postgres, RowLocks: true, LocksInTransaction: true, ShowsEarly: true,
		TakesWrites: "SELECT current_setting('transaction_read_only') = 'off'",
		OpenTransactions: `SELECT format('connection %s has been idle for %s s in a transaction; its last statement: %s', pid, extract(epoch FROM now() - state_change)::int, query)
			FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
		// The query counts the waits of this database only. A session waits for the transaction that has
		// written the row (`transactionid`), or behind another session in the row's queue (`tuple`).
		RowWaits: `SELECT count(*) AS value FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event IN ('transactionid', 'tuple') AND cardinality(pg_blocking_pids(pid)) > 0`,
	}
}
