package mysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/oversell/oversell/internal/explore/wire/mysql"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/require"
)

// TestTransparentMySQL: the gate passes bytes unchanged in both directions, with two exceptions. It
// removes some capabilities, and it sends statements of its own after the login.
func TestTransparentMySQL(t *testing.T) {
	address, password := mariadb(t)
	setup := admin(t)
	wiretest.Exec(t, setup, "SET GLOBAL max_allowed_packet = 64 << 20")
	wiretest.Exec(t, setup, `CREATE OR REPLACE TABLE every (id INT AUTO_INCREMENT PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d BIGINT UNSIGNED, e FLOAT, f DOUBLE,
		g DECIMAL(20,5), h DATE, i DATETIME(6), j TIMESTAMP NULL, k TIME(3), l YEAR, m CHAR(9), n VARCHAR(99), o BLOB, p TEXT, q ENUM('x','y'), r SET('x','y'), s BIT(12), t JSON, u POINT)`)
	wiretest.Exec(t, setup, "CREATE OR REPLACE PROCEDURE several() BEGIN SELECT 1 AS one; SELECT id FROM every; UPDATE every SET a = 2; SELECT 'x', NULL; END")

	for name, program := range map[string]func(t *testing.T, address string){
		"driver": func(t *testing.T, address string) {
			drive(t, open(t, address, password, "multiStatements=true&parseTime=true&maxAllowedPacket=0"))
		},
		"by hand": func(t *testing.T, address string) { byHand(t, dial(t, address, password, 0)) },
		// The server has not offered these capabilities, but mysql2 sets them.
		"greedy": func(t *testing.T, address string) { byHand(t, dial(t, address, password, 1<<5|1<<7|1<<24|1<<25|1<<27)) },
		// Without this bit, a client looks like MariaDB's.
		"MariaDB": func(t *testing.T, address string) {
			c := greet(t, address, password)
			c.send(1, c.response(clientCapabilities&^1))
			c.login()
			byHand(t, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			b := wiretest.Through(t, g, mysql.Protocol(nil), address)
			program(t, b.Program.Address)
			if err := g.end(t); !errors.Is(err, io.EOF) {
				t.Errorf("the connection ended with %v", err)
			}
			outer, inner := b.Said(t)
			same(t, "to the program", changedGreeting(t, inner[0][1]), outer[0][1])
			same(t, "to the server", changedReply(t, outer[0][0]), inner[0][0])
		})
	}
}

// same compares the bytes sent with the bytes received, without the gate's own statements.
func same(t *testing.T, way string, sent, arrived []byte) {
	t.Helper()
	longer, shorter := &sent, arrived
	if way == "to the server" {
		longer, shorter = &arrived, sent
	}
	*longer = withoutOwn(t, way, *longer)
	if len(shorter) < 100 {
		t.Fatalf("%s: %d bytes are no conversation", way, len(shorter))
	}
	if d := wiretest.Difference(arrived, sent); d != "" {
		t.Errorf("%s: %s", way, d)
	}
}

// withoutOwn removes the gate's own statements and their answers, which follow the OK of the login.
func withoutOwn(t *testing.T, way string, b []byte) []byte {
	t.Helper()
	var out []byte
	removed := 0
	logins := 0
	for at := 0; at < len(b); {
		n := 4 + (int(b[at]) | int(b[at+1])<<8 | int(b[at+2])<<16)
		p := b[at : at+n]
		if way == "to the server" {
			if p[3] == 0 && (string(p[4:]) == "\x03SET SESSION innodb_lock_wait_timeout=3600, lock_wait_timeout=3600" || string(p[4:]) == "\x03SELECT @@tx_isolation") {
				removed++
				at += n
				continue
			}
		} else if logins == 0 && at > 0 && p[4] == 0 {
			logins++
			out = append(out, p...)
			at += n
			for range 1 + 5 { // OK, and one column of one row
				at += 4 + int(b[at])
				removed++
			}
			continue
		}
		out = append(out, p...)
		at += n
	}
	if removed < 2 {
		t.Fatalf("%s: only %d packets of the session's own", way, removed)
	}
	return out
}

func changedGreeting(t *testing.T, b []byte) []byte {
	t.Helper()
	b = bytes.Clone(b)
	at := 4 + 1 + bytes.IndexByte(b[5:], 0) + 1 + 4 + 8 + 1
	low, high := binary.LittleEndian.Uint16(b[at:]), binary.LittleEndian.Uint16(b[at+5:])
	if low&(1<<5) == 0 || high&(1<<8) == 0 || low&1 != 0 || binary.LittleEndian.Uint32(b[at+14:]) == 0 {
		t.Fatalf("the server offers %#x %#x: nothing to strike", low, high)
	}
	binary.LittleEndian.PutUint16(b[at:], low&^(1<<5|1<<7|1<<11))
	binary.LittleEndian.PutUint16(b[at+5:], high&^(0xf<<8))
	clear(b[at+14 : at+18])
	return b
}

func changedReply(t *testing.T, b []byte) []byte {
	t.Helper()
	b = bytes.Clone(b)
	capabilities := binary.LittleEndian.Uint32(b[4:])
	binary.LittleEndian.PutUint32(b[4:], capabilities&^(1<<5|1<<7|1<<11|0xf<<24))
	if capabilities&1 == 0 {
		clear(b[32:36])
	}
	return b
}

func drive(t *testing.T, db *sql.DB) {
	ctx := context.Background()
	wiretest.Exec(t, db, "DELETE FROM every")
	insert := `INSERT INTO every (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	row := []any{-1, 2, -3, uint64(1<<63 + 1), 1.5, -2.25, "12.00005", "2024-02-29", "2024-02-29 01:02:03.000004", nil, "-11:12:13.5", 1999, "c", "é", []byte{0, 1, 255}, "text", "x", "x,y", []byte{1, 2}, `{"a":1}`}
	wiretest.Exec(t, db, insert, row...)
	wiretest.Exec(t, db, insert, make([]any, 20)...)
	stmt, err := db.PrepareContext(ctx, insert)
	require.NoError(t, err)
	for range 3 {
		if _, err := stmt.Exec(row...); err != nil {
			t.Fatal(err)
		}
	}
	_ = stmt.Close()
	if n := read(t, db, "SELECT * FROM every"); n != 5 {
		t.Errorf("%d rows as text, want 5", n)
	}
	if n := read(t, db, "SELECT * FROM every WHERE id > ? OR a = ?", 0, -1); n != 5 {
		t.Errorf("%d rows of a prepared statement, want 5", n)
	}
	if n := read(t, db, "SELECT 1; SELECT id FROM every; UPDATE every SET a = 1; SELECT 3"); n != 7 {
		t.Errorf("%d rows of several statements, want 7", n)
	}
	if n := read(t, db, "CALL several()"); n != 7 {
		t.Errorf("%d rows of a procedure, want 7", n)
	}
	var refusal *driver.MySQLError
	for sql, want := range map[string]uint16{"SELECT * FROM nothing": 1146, "nonsense": 1064, "SELECT 1; nonsense": 1064} {
		rows, err := db.Query(sql)
		for err == nil && rows.NextResultSet() {
		}
		if err == nil {
			err = errors.Join(rows.Err(), rows.Close())
		}
		if !errors.As(err, &refusal) || refusal.Number != want {
			t.Errorf("%s: %v, want error %d", sql, err, want)
		}
	}
	driver.RegisterReaderHandler("rows", func() io.Reader { return strings.NewReader("1\n2\n") })
	if _, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::rows' INTO TABLE every (a)"); !errors.As(err, &refusal) || refusal.Number != 4166 {
		t.Errorf("LOAD DATA LOCAL: %v, want error 4166", err)
	}
	tx, err := db.Begin()
	require.NoError(t, err)
	if _, err := tx.Exec("UPDATE every SET b = b + 1 WHERE id > ?", 0); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, tx.Rollback())
	require.NoError(t, db.Ping())
	big := bytes.Repeat([]byte("0123456789abcdef"), 17<<16) // 17 MiB: two packets
	var back []byte
	if err := db.QueryRow("SELECT ? AS big", big).Scan(&back); err != nil || !bytes.Equal(big, back) {
		t.Errorf("17 MiB: %d bytes came back, %v", len(back), err)
	}
	exact := (1<<24 - 1) - 1 - len("SELECT length('')") // the protocol requires an empty packet after this one
	var length int
	if err := db.QueryRow("SELECT length('" + strings.Repeat("a", exact) + "')").Scan(&length); err != nil || length != exact {
		t.Errorf("length %d, %v; want %d", length, err, exact)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			n++
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// byHand sends commands that drivers do not send.
func byHand(t *testing.T, c *client) {
	t.Helper()
	c.command(0x0e)
	if got := c.receive(); got[0] != 0 {
		t.Errorf("PING: %q", got)
	}
	c.command(0x09)
	if got := c.receive(); !strings.HasPrefix(string(got), "Uptime") {
		t.Errorf("STATISTICS: %q", got)
	}
	c.command(0x04, []byte("every\x00")...)
	if n, _ := c.until(1); n != 23 {
		t.Errorf("FIELD LIST: %d packets, want 23", n)
	}
	c.command(0x1b, 0, 0)
	if got := c.receive(); got[0] != 0xfe {
		t.Errorf("SET OPTION: %q", got)
	}
	// A cursor: no rows with the answer, then three at a time.
	number := c.prepare("SELECT seq FROM seq_1_to_5")
	c.execute(number, 1)
	if n, last := c.until(1); n != 3 || binary.LittleEndian.Uint16(last[3:])&0x40 == 0 {
		t.Errorf("a cursor: %d packets, the last %q", n, last)
	}
	for _, want := range []int{4, 3} { // including EOF
		c.command(0x1c, id(number, 3, 0, 0, 0)...)
		if n := c.rows(); n != want {
			t.Errorf("FETCH: %d packets, want %d", n, want)
		}
	}
	c.command(0x1a, id(number)...)
	c.receive()
	c.command(0x19, id(number)...)
	// A value in two pieces, sent before its statement.
	number = c.prepare("SELECT ?, ?")
	c.command(0x18, id(number, append([]byte{1, 0}, "two "...)...)...)
	c.command(0x18, id(number, append([]byte{1, 0}, "pieces"...)...)...)
	c.execute(number, 0, append([]byte{0, 1, 3, 0, 0xfc, 0}, 7, 0, 0, 0)...)
	var row []byte
	for range 5 {
		row = c.receive()
	}
	c.receive()
	if !bytes.HasSuffix(row, []byte("\x0atwo pieces")) {
		t.Errorf("a long value: %q", row)
	}
	// These commands do not wait for earlier answers.
	var line []byte
	for _, one := range []string{"\x03SELECT 1", "\x0e", "\x03nonsense", "\x16SELECT 5", "\x17\xff\xff\xff\xff\x00\x01\x00\x00\x00", "\x03SELECT 2"} {
		line = append(line, packet(0, []byte(one))...)
	}
	if _, err := c.conn.Write(line); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, eofs := range []int{2, 1, 1} {
		n, _ := c.until(eofs)
		got = append(got, n)
	}
	c.receive() // the answer to PREPARE
	c.until(1)
	for _, eofs := range []int{2, 2} {
		n, _ := c.until(eofs)
		got = append(got, n)
	}
	if want := []int{5, 1, 1, 5, 5}; !slices.Equal(got, want) {
		t.Errorf("packets of a pipeline: %d, want %d", got, want)
	}
	c.quit()
}

// TestLoginAgain: CHANGE_USER logs in again with several messages, and RESET_CONNECTION without any.
// After either, the transaction is rolled back and the gate sets the lock wait time-out again.
func TestLoginAgain(t *testing.T) {
	g, address, password := proxy(t)
	wiretest.Exec(t, admin(t), "CREATE OR REPLACE TABLE again (a INT); CREATE OR REPLACE USER open IDENTIFIED BY ''; GRANT ALL ON shop.* TO open")
	c := dial(t, address, password, 0)
	ask := func(sql string) string {
		c.command(0x03, []byte(sql)...)
		n := c.receive()
		if n[0] != 1 {
			t.Fatalf("%s: %q", sql, n)
		}
		c.until(1)
		row := c.receive()
		c.receive()
		return string(row[1:])
	}
	const timeouts = "SELECT concat(@@innodb_lock_wait_timeout, ' ', @@lock_wait_timeout, ' ', @@autocommit, ' ', count(*)) FROM again"
	run := func(sql string) {
		c.command(0x03, []byte(sql)...)
		if got := c.receive(); got[0] != 0 {
			t.Fatalf("%s: %q", sql, got)
		}
	}
	if got := ask(timeouts); got != "3600 3600 ON 0" {
		t.Errorf("after the login: %s", got)
	}
	run("SET innodb_lock_wait_timeout = 1, autocommit = 0")
	run("INSERT INTO again VALUES (1)")
	if got := ask(timeouts); got != "3600 3600 OFF 1" {
		t.Errorf("after SET: %s", got)
	}
	c.command(0x1f)
	if got := c.receive(); got[0] != 0 {
		t.Errorf("RESET CONNECTION: %q", got)
	}
	if got := ask(timeouts); got != "3600 3600 ON 0" {
		t.Errorf("after RESET CONNECTION: %s", got)
	}
	run("SET autocommit = 0")
	run("INSERT INTO again VALUES (1)")
	// This password is wrong for the server's new challenge, so the login continues.
	change := append([]byte("\x11shop\x00\x14"), scramble(make([]byte, 20), password)...)
	c.send(0, append(change, "shop\x00\x2d\x00mysql_native_password\x00"...))
	if got := c.login(); got[0] != 0 {
		t.Fatalf("CHANGE USER: %q", got)
	}
	if got := ask(timeouts); got != "3600 3600 ON 0" {
		t.Errorf("after CHANGE USER: %s", got)
	}
	// With an empty password, the packet that answers the challenge is empty.
	run("SET autocommit = 0")
	run("INSERT INTO again VALUES (1)")
	c.password = ""
	c.send(0, append(bytes.Replace(change, []byte("shop"), []byte("open"), 1), "shop\x00\x2d\x00mysql_native_password\x00"...))
	if got := c.login(); got[0] != 0 {
		t.Fatalf("CHANGE USER without a password: %q", got)
	}
	c.quit()
	g.end(t)
	var got []string
	for _, o := range g.Commands() {
		if o.Gated {
			got = append(got, fmt.Sprintf("%s: %t", strings.Fields(o.Text)[0], o.Ends))
		} else if o.Text != "LOGIN" {
			t.Errorf("%s passed", o.Text)
		}
	}
	want := []string{
		"SELECT: false", "SET: false", "INSERT: false", "SELECT: false", "RESET: true", "SELECT: false",
		"SET: false", "INSERT: false", "CHANGE: true", "SELECT: false", "SET: false", "INSERT: false", "CHANGE: true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("gated: %q, want %q", got, want)
	}
}
