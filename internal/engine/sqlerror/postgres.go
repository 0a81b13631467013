package sqlerror

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// postgresKind reads an answer of PostgreSQL. The codes are those of the PostgreSQL 15
// manual, appendix A.
func postgresKind(err error) (kind Kind, said bool) {
	if errors.Is(err, pgx.ErrTxCommitRollback) { // COMMIT of a transaction that had failed: the answer was ROLLBACK
		return Other, true
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return Other, false
	}
	switch pg.Code {
	case "40001", "40P01", // serialization_failure, deadlock_detected
		"55P03", "57014": // lock_not_available (lock_timeout), query_canceled (statement_timeout)
		return Contended, true
	case "23505": // unique_violation
		return Duplicate, true
	case "25006", // read_only_sql_transaction, after a failover
		"25P03", "25P04": // idle_in_transaction_session_timeout, transaction_timeout: the session has ended
		return Down, true
	}
	switch class := pg.Code[:min(2, len(pg.Code))]; class {
	case "08", // connection exception
		"53": // too many connections, no more memory or disk
		return Down, true
	case "57": // operator intervention: shutdown, crash, starting up, the database dropped
		return Down, true
	}
	return Other, true
}

// postgresAmbiguous: what was said does not tell whether a COMMIT took place. The server
// may end the session at any moment, after a COMMIT was written, too (postgres.c: quickdie
// runs in a signal handler). What speaks its protocol in front of several servers says
// statement_completion_unknown, or that a connection of its own broke.
func postgresAmbiguous(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.SeverityUnlocalized != "ERROR" || pg.Code == "40003" || strings.HasPrefix(pg.Code, "08"))
}

// postgresBroken: a connection that could not be made, whatever the driver calls the
// reason, or that has gone.
func postgresBroken(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.Is(err, pgconn.ErrConnClosed)
}
