package mysql_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/mysql"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestCommands checks the text, effect and answer of each kind of command.
func TestCommands(t *testing.T) {
	const (
		writes = schedule.Writes
		reads  = schedule.Reads
		local  = schedule.Local
	)
	type outcome struct {
		text    string // an empty string: the statement itself
		effect  schedule.Effect
		answer  string
		flags   string // gated, named, ends, compound; changed, failed
		madeAny bool
	}
	wiretest.Exec(t, admin(t), `CREATE OR REPLACE TABLE items (id INT PRIMARY KEY, stock INT, name VARCHAR(200), price DECIMAL(9,2), sold DATETIME(3), code VARBINARY(9));
		INSERT INTO items VALUES (1, 1, 'a lamp', 9.5, '2024-01-02 03:04:05.006', x'00ff'), (2, 0, '', NULL, NULL, NULL);
		CREATE OR REPLACE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, item INT UNIQUE) AUTO_INCREMENT = 70;
		CREATE OR REPLACE PROCEDURE look() SELECT stock FROM items`)
	g, address, password := proxy(t)
	db := open(t, address, password, "multiStatements=true")
	cases := []struct {
		sql  string
		args []any
		want outcome
	}{
		{"SET NAMES utf8mb4", nil, outcome{"", local, "ok", "", false}},
		{"SELECT @@version_comment LIMIT 1", nil, outcome{"", local, "@@version_comment=", "", false}},
		{"SELECT stock FROM items WHERE id = 1", nil, outcome{"", reads, "stock=1", "gated", false}},
		{"SELECT stock\n\tFROM items /* request 7 */ WHERE id = ?", []any{1}, outcome{"SELECT stock FROM items WHERE id = 1", reads, "stock=1", "gated", false}},
		{"SELECT id, name, price, sold, code FROM items ORDER BY id", nil, outcome{"", reads, "id=1 name='a lamp' price=9.50 sold='2024-01-02 03:04:05.006' code=0x00ff; id=...", "gated", false}},
		{"SELECT id, name, price, sold, code FROM items WHERE id >= ? ORDER BY id", []any{1}, outcome{"SELECT id, name, price, sold, code FROM items WHERE id >= 1 ORDER BY id", reads, "id=1 name='a lamp' price=9.50 sold='2024-01-02 03:04:05.006' code=0x00ff; id=...", "gated", false}},
		{"SELECT name, price FROM items WHERE id = 2", nil, outcome{"", reads, "name='' price=NULL", "gated", false}},
		{"SELECT stock FROM items WHERE id = 3", nil, outcome{"", reads, "no row", "gated failed", false}},
		{"SELECT id FROM items", nil, outcome{"", reads, "id=1; id=2", "gated", false}},
		{"SELECT stock FROM items WHERE id = ? FOR UPDATE", []any{1}, outcome{"SELECT stock FROM items WHERE id = 1 FOR UPDATE", writes, "stock=1", "gated changed", false}},
		{"BEGIN", nil, outcome{"", local, "ok", "gated", false}},
		{"UPDATE items SET stock = stock - 1 WHERE id = 1", nil, outcome{"", writes, "1 changed", "gated changed", false}},
		{"BEGIN", nil, outcome{"", writes, "ok", "gated ends changed", false}}, // it commits implicitly
		{"UPDATE items SET stock = ? WHERE id = ? AND stock > ?", []any{0, 1, 5}, outcome{"UPDATE items SET stock = 0 WHERE id = 1 AND stock > 5", writes, "0 changed", "gated failed", false}},
		{"COMMIT", nil, outcome{"", writes, "ok", "gated ends changed", false}},
		{"ROLLBACK", nil, outcome{"", writes, "ok", "gated ends changed", false}},
		{"INSERT INTO orders (item) VALUES (?)", []any{1}, outcome{"INSERT INTO orders (item) VALUES (1)", writes, "1 changed", "gated changed", true}},
		{"INSERT INTO orders (item) VALUES (2) RETURNING id", nil, outcome{"", writes, "id=71", "gated changed", true}},
		{"INSERT INTO orders (item) VALUES (1)", nil, outcome{"", writes, "error 1062: Duplicate entry '1' for key 'item'", "gated failed", false}},
		{"SELECT nonsense", nil, outcome{"", reads, "error 1054: Unknown column 'nonsense' in 'SELECT'", "gated failed", false}},
		{"SELECT GET_LOCK('a', 1)", nil, outcome{"", writes, "GET_LOCK('a', 1)=1", "gated named changed", false}},
		{"SELECT RELEASE_LOCK('a')", nil, outcome{"", writes, "RELEASE_LOCK('a')=1", "gated changed", false}},
		{"CALL look()", nil, outcome{"", writes, "stock=0; stock=0", "gated compound changed", false}},
		{"UPDATE items SET stock = 1 WHERE id = 1; SELECT stock FROM items WHERE id = 1", nil, outcome{"", writes, "stock=1; 1 changed", "gated compound changed", false}},
		{"SET autocommit = 0", nil, outcome{"", local, "ok", "gated", false}},
		{"SELECT stock FROM items WHERE id = 1", nil, outcome{"", reads, "stock=1", "gated", false}},
		{"SET autocommit = 1", nil, outcome{"", writes, "ok", "gated ends changed", false}}, // it commits implicitly
		{"SET autocommit = 1", nil, outcome{"", local, "ok", "gated", false}},
		{"INSERT INTO orders (item) SELECT id FROM items WHERE id = 3", nil, outcome{"", writes, "0 changed", "gated failed", false}},
		{"INSERT INTO orders (item) SELECT max(item) + 1 FROM orders WHERE item > 9 HAVING max(item) > 9", nil, outcome{"", writes, "0 changed", "gated divided failed", false}},
		{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil, outcome{"", local, "ok", "gated", false}},
		{"INSERT INTO orders (item) SELECT id FROM items WHERE id = 3", nil, outcome{"", writes, "0 changed", "gated divided failed", false}},
		{"TRUNCATE TABLE orders", nil, outcome{"", writes, "ok", "gated ends changed", false}},
		{"SELECT ?, ?, ?, ?", []any{nil, "it's", []byte{0}, time.Date(2024, 1, 2, 3, 4, 5, 6000, time.UTC)}, outcome{"SELECT NULL, 'it''s', x'00', '2024-01-02 03:04:05.000006'", reads, "?=NULL ?=it's ?=0x00 ?='2024-01-02 03:04:05.000006'", "gated", false}},
		{"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", nil, outcome{"", local, "ok", "gated", false}},
		{"SELECT stock FROM items", nil, outcome{"", writes, "stock=1; stock=0", "gated changed", false}},
	}
	for _, c := range cases {
		rows, err := db.Query(c.sql, c.args...)
		if err != nil {
			continue // the error says what failed
		}
		for more := true; more; more = rows.NextResultSet() {
			for rows.Next() {
			}
		}
		_ = rows.Close()
	}
	require.NoError(t, db.Close())
	if err := g.end(t); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
	if c := wait(t, g.joined); c.ID == 0 {
		t.Error("the server's number of the connection is not known")
	}
	var commands []*wire.Command
	for _, o := range g.Commands() {
		if strings.HasPrefix(o.Text, "PREPARE ") || o.Text == "CLOSE STATEMENT" || o.Text == "PING" {
			if o.Gated {
				t.Errorf("%s is gated", o.Text)
			}
			continue
		}
		commands = append(commands, o)
	}
	if len(commands) != len(cases) {
		t.Fatalf("%d commands, want %d", len(commands), len(cases))
	}
	for i, o := range commands {
		want := cases[i].want
		if want.text == "" {
			want.text = cases[i].sql
		}
		got := outcome{o.Text, o.Effect, o.Answer.Text, flags(o), len(o.Answer.Made) > 0}
		if strings.HasSuffix(want.answer, "comment=") {
			got.answer = got.answer[:len(want.answer)]
		}
		if strings.HasPrefix(want.answer, "error 1054") {
			got.answer = want.answer // the text differs between versions
		}
		if got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", cases[i].sql, got, want)
		}
	}
}

func flags(o *wire.Command) string {
	var all []string
	for _, one := range []struct {
		set  bool
		name string
	}{{o.Gated, "gated"}, {o.Named, "named"}, {o.Ends, "ends"}, {o.Compound, "compound"}, {o.Divided, "divided"}, {o.Answer.Changed, "changed"}, {o.Answer.Failed, "failed"}} {
		if one.set {
			all = append(all, one.name)
		}
	}
	return strings.Join(all, " ")
}

// TestTLS: if a program insists on TLS, the program and the user read what to do.
func TestTLS(t *testing.T) {
	g, address, password := proxy(t)
	c := greet(t, address, password)
	c.send(1, c.response(clientCapabilities | 1<<11)[:32])
	_, _ = c.conn.Write([]byte("\x16\x03\x01\x02\x00 it begins at once"))
	got := c.receive()
	_ = c.conn.Close()
	err := g.end(t)
	var refused *wire.Refused
	if !errors.As(err, &refused) || !strings.Contains(refused.Why, "ssl-mode=DISABLED") {
		t.Errorf("%v, want a line that says what to do", err)
	}
	if got[0] != 0xff || !strings.Contains(string(got), refused.Why) {
		t.Errorf("the program was told %q", got)
	}
}

// TestLoginRefused: the server refuses a wrong password with its own message.
func TestLoginRefused(t *testing.T) {
	g, address, _ := proxy(t)
	c := greet(t, address, "wrong")
	c.send(1, c.response(clientCapabilities))
	if got := c.login(); got[0] != 0xff || !strings.Contains(string(got), "Access denied") {
		t.Errorf("the program was told %q", got)
	}
	if err := g.end(t); err == nil || !strings.Contains(err.Error(), "error 1045") {
		t.Errorf("%v, want error 1045", err)
	}
}

// TestNoServer: another kind of server listens at the address.
func TestNoServer(t *testing.T) {
	server := localservertest.Serve(t, func(c net.Conn) { _, _ = c.Write([]byte("\x05\x00\x00\x00+OK\r\n")) })
	g := newGate()
	conn, err := net.Dial("tcp", wiretest.Proxy(t, g, mysql.Protocol(nil), server))
	require.NoError(t, err)
	defer conn.Close()
	if err := g.end(t); err == nil || !strings.Contains(err.Error(), "greets as no MySQL or MariaDB") {
		t.Errorf("%v", err)
	}
}

// TestSwitchedLogin logs in with another plugin than the greeting names.
func TestSwitchedLogin(t *testing.T) {
	setup := admin(t)
	if _, err := setup.Exec("INSTALL SONAME 'auth_ed25519'"); err != nil {
		t.Skipf("the server has no ed25519: %v", err)
	}
	wiretest.Exec(t, setup, "CREATE OR REPLACE USER 'edward'@'127.0.0.1' IDENTIFIED VIA ed25519 USING PASSWORD('secret')")
	_, address, _ := proxy(t)
	db := openAs(t, "edward:secret@tcp("+address+")/")
	var who string
	err := driver.ErrMalformPkt
	for try := 0; errors.Is(err, driver.ErrMalformPkt) && try < 5; try++ { // the driver fails on the 1 in 256 challenges that end with a 0
		err = db.QueryRow("SELECT current_user()").Scan(&who)
	}
	if err != nil || who != "edward@127.0.0.1" {
		t.Errorf("%q, %v", who, err)
	}
}

// TestKilled: if the server ends a connection, the program receives the server's last message.
func TestKilled(t *testing.T) {
	server, password := mariadb(t)
	killer := admin(t)
	wiretest.Exec(t, killer, "DO 1") // open this connection first, so that it is not the newest
	ends := func(address string, id func() int64) string {
		c := dial(t, address, password, 0)
		wiretest.Exec(t, killer, fmt.Sprintf("KILL %d", id()))
		got, err := io.ReadAll(c.conn)
		return fmt.Sprintf("%q %v", got, err)
	}
	direct := ends(server, func() (id int64) {
		require.NoError(t, killer.QueryRow("SELECT max(id) FROM information_schema.processlist").Scan(&id))
		return id
	})
	g, address, _ := proxy(t)
	gated := ends(address, func() int64 { return wait(t, g.joined).ID })
	if direct != gated {
		t.Errorf("through the gate %s, without %s", gated, direct)
	}
	if err := g.end(t); err == nil || !strings.Contains(err.Error(), "server has hung up") {
		t.Errorf("it ended with %v", err)
	}
}
