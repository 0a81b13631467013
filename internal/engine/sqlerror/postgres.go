package sqlerror

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// postgresKind classifies an error of PostgreSQL. The codes are listed in the PostgreSQL 15 manual, appendix A.
func postgresKind(err error) (kind Kind, said bool) {
	if errors.Is(err, pgx.ErrTxCommitRollback) { // the transaction had failed, so the server answered COMMIT with ROLLBACK
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

// postgresAmbiguous reports whether an error leaves open whether a COMMIT took place. The server may end the
// session at any moment, even after it has written a COMMIT (postgres.c: quickdie runs in a signal handler). A
// proxy in front of several servers may answer statement_completion_unknown, or that its connection to a
// server broke.
func postgresAmbiguous(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.SeverityUnlocalized != "ERROR" || pg.Code == "40003" || strings.HasPrefix(pg.Code, "08"))
}

func postgresBroken(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.Is(err, pgconn.ErrConnClosed)
}
