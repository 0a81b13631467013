package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/mysql"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/require"
)

// late is a protocol that reports an interrupted command as timed out, as the event timeout does.
func late() wire.Protocol {
	p := mysql.Protocol(nil)
	open := p.Open
	p.Open = func(program, server *wire.Socket) wire.Session { return &lateSession{Session: open(program, server)} }
	return p
}

type lateSession struct {
	wire.Session
	part []byte
}

func (s *lateSession) Receive(current *wire.Command) (wire.Message, error) {
	m, err := s.Session.Receive(current)
	s.part = append(s.part, m.Raw...)
	m.Raw = nil
	if m.Ends && current != nil {
		m.Raw = s.TimedOut(current, s.part)
		s.part = nil
	}
	return m, err
}

// TestTimedOut: for an interrupted statement, sent as text or prepared, the program gets the error of a
// lock wait time-out. GET_LOCK returns 0.
func TestTimedOut(t *testing.T) {
	address, password := mariadb(t)
	holder := admin(t)
	wiretest.Exec(t, holder, "CREATE OR REPLACE TABLE held (id INT PRIMARY KEY, a INT); INSERT INTO held VALUES (1, 1), (2, 2)")
	wiretest.Exec(t, holder, "BEGIN; SELECT * FROM held WHERE id = 2 FOR UPDATE; SELECT GET_LOCK('held', 0)")
	t.Cleanup(func() { wiretest.Exec(t, holder, "ROLLBACK; DO RELEASE_ALL_LOCKS()") })
	killer := admin(t)

	for _, c := range []struct {
		sql    string
		args   []any
		answer string
	}{
		{"UPDATE held SET a = 3 WHERE id = 2", nil, "error 1205: Lock wait timeout exceeded; try restarting transaction"},
		{"UPDATE held SET a = 3 WHERE id = ?", []any{2}, "error 1205: Lock wait timeout exceeded; try restarting transaction"},
		{"SELECT a FROM held WHERE id < 5 FOR UPDATE", nil, "error 1205: Lock wait timeout exceeded; try restarting transaction"},
		{"SELECT a FROM held WHERE id < ? FOR UPDATE", []any{5}, "error 1205: Lock wait timeout exceeded; try restarting transaction"},
		{"SELECT GET_LOCK('held', 100)", nil, "GET_LOCK('held', 100)=0"},
		{"SELECT GET_LOCK(?, 100) AS got", []any{"held"}, "got=0"},
	} {
		t.Run(c.sql, func(t *testing.T) {
			g := newGate()
			db := open(t, wiretest.Proxy(t, g, late(), address), password, "")
			require.NoError(t, db.Ping())
			id := wait(t, g.joined).ID
			got := make(chan string, 1)
			go func() { got <- outcomeOf(db, c.sql, c.args) }()
			kill(t, killer, id)
			want := "0"
			if strings.HasPrefix(c.answer, "error") {
				want = "Error 1205 (HY000): Lock wait timeout exceeded; try restarting transaction"
			}
			if got := wait(t, got); got != want {
				t.Errorf("the program was told %q, want %q", got, want)
			}
			if err := db.Ping(); err != nil {
				t.Errorf("the connection is of no more use: %v", err)
			}
			_ = db.Close()
			g.end(t)
			all := g.Commands()
			for _, o := range all {
				if o.Gated && (o.Answer.Text != c.answer || !o.Answer.Failed || o.Answer.Changed) {
					t.Errorf("%+v, want %q", o.Answer, c.answer)
				}
			}
		})
	}
}

func outcomeOf(db *sql.DB, query string, args []any) string {
	rows, err := db.Query(query, args...)
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	value := "no row"
	for rows.Next() {
		if err := rows.Scan(&value); err != nil {
			return err.Error()
		}
	}
	if rows.Err() != nil {
		return rows.Err().Error()
	}
	return value
}

// kill interrupts the statement of a connection once it waits.
func kill(t *testing.T, db *sql.DB, id int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		var waits int
		// No other test waits for a row. (The server does not refresh INNODB_TRX for frequent queries.)
		err := db.QueryRowContext(ctx, `SELECT (SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Innodb_row_lock_current_waits')
			+ (SELECT count(*) FROM information_schema.processlist WHERE id = ? AND state = 'User lock')`, id).Scan(&waits)
		require.NoError(t, err)
		if waits > 0 {
			break
		}
	}
	var none *driver.MySQLError
	if _, err := db.ExecContext(ctx, fmt.Sprintf("KILL QUERY %d", id)); errors.As(err, &none) {
		t.Fatal(err)
	}
}
