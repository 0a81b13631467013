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
)

// The codes of the real servers are seen by the conformance suite; this is the
// rest.
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
		{"killed", &mysql.MySQLError{Number: 1927}, Down},
		{"syntax", &mysql.MySQLError{Number: 1064}, Other},
		{"bad connection", driver.ErrBadConn, Down},
		{"broken connection", mysql.ErrInvalidConn, Down},
		{"refused", &net.OpError{Op: "dial", Err: errors.New("refused")}, Down},
		{"end of file", io.ErrUnexpectedEOF, Down},
		{"deadline", context.DeadlineExceeded, Other},
		{"cancelled", context.Canceled, Other},
	} {
		if got := KindOf(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestDefinite(t *testing.T) {
	if !Definite(fmt.Errorf("commit: %w", &mysql.MySQLError{Number: 1213})) {
		t.Error("the server's own answer is definite")
	}
	if Definite(mysql.ErrInvalidConn) {
		t.Error("a broken connection says nothing about the commit")
	}
}
