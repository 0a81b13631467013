package sqlerror

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oversell/oversell/internal/expect"
)

// TestKindOf covers the codes that the conformance suite does not get from real servers.
func TestKindOf(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want Kind
	}{
		{"none", nil, Other},
		{"deadlock", &mysql.MySQLError{Number: 1213}, Contended},
		{"lock wait", fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: 1205}), Contended},
		{"duplicate", &mysql.MySQLError{Number: 1062}, Duplicate},
		{"a Galera node that is cut off", &mysql.MySQLError{Number: 1047}, Down},
		{"a Galera node that is cut off while it commits", &mysql.MySQLError{Number: 1180}, Down},
		{"killed", &mysql.MySQLError{Number: 1927}, Down},
		{"no room on the disk", &mysql.MySQLError{Number: 1114}, Down},
		{"syntax", &mysql.MySQLError{Number: 1064}, Other},
		{"serialization failure", &pgconn.PgError{Code: "40001"}, Contended},
		{"PostgreSQL's deadlock", fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: "40P01"}), Contended},
		{"lock_timeout", &pgconn.PgError{Code: "55P03"}, Contended},
		{"statement_timeout", &pgconn.PgError{Code: "57014"}, Contended},
		{"unique violation", &pgconn.PgError{Code: "23505"}, Duplicate},
		{"in a failed transaction", &pgconn.PgError{Code: "25P02"}, Other},
		{"idle in a transaction for too long", &pgconn.PgError{Code: "25P03"}, Down},
		{"read-only", &pgconn.PgError{Code: "25006"}, Down},
		{"too many connections", &pgconn.PgError{Code: "53300"}, Down},
		{"PostgreSQL's full disk", &pgconn.PgError{Code: "53100"}, Down},
		{"starting up", &pgconn.PgError{Code: "57P03"}, Down},
		{"wrong password", &pgconn.PgError{Code: "28P01"}, Other},
		{"COMMIT that was a ROLLBACK", pgx.ErrTxCommitRollback, Other},
		{"connection closed", pgconn.ErrConnClosed, Down},
		{"bad connection", driver.ErrBadConn, Down},
		{"broken connection", mysql.ErrInvalidConn, Down},
		{"refused", &net.OpError{Op: "dial", Err: errors.New("refused")}, Down},
		{"end of file", io.ErrUnexpectedEOF, Down},
		{"deadline", context.DeadlineExceeded, Other},
		{"cancelled", context.Canceled, Other},
	} {
		expect.Equal(t, KindOf(c.err), c.want, c.name)
	}
}

func TestDefinite(t *testing.T) {
	if !Definite(fmt.Errorf("commit: %w", &mysql.MySQLError{Number: 1213})) {
		t.Error("the server's own answer is definite")
	}
	if !Definite(pgx.ErrTxCommitRollback) || !Definite(&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "40001"}) {
		t.Error("PostgreSQL's own answer is definite")
	}
	if Definite(&pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "57P02"}) {
		t.Error("the end of a session says nothing about the commit")
	}
	if Definite(&mysql.MySQLError{Number: 1180}) {
		t.Error("a Galera node that has lost the others says nothing about the commit")
	}
	if Definite(mysql.ErrInvalidConn) {
		t.Error("a broken connection says nothing about the commit")
	}
}
