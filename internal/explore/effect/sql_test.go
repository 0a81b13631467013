package effect_test

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

const (
	mysql    = effect.MySQL
	postgres = effect.Postgres
)

// TestEffect: only real reads count as reads.
func TestEffect(t *testing.T) {
	for _, c := range []struct {
		sql     string
		dialect effect.Dialect
		want    schedule.Effect
	}{
		{"SELECT stock FROM items WHERE id = 1", mysql, schedule.Reads},
		{"  select stock from `items`;  ", mysql, schedule.Reads},
		{"(SELECT 1 FROM a) UNION (SELECT 2 FROM b)", mysql, schedule.Reads},
		{"SELECT count(*), coalesce(sum(units), 0), now(), lower(name) FROM orders", mysql, schedule.Reads},
		{"SELECT * FROM items WHERE id IN (1, 2) AND (a OR b)", mysql, schedule.Reads},
		{"SELECT 'FOR UPDATE' FROM items", mysql, schedule.Reads},
		{`SELECT "it's -- FOR UPDATE" FROM items`, mysql, schedule.Reads},
		{`SELECT * FROM items WHERE name = 'O\'Reilly' LIMIT 1`, mysql, schedule.Reads},
		{`SELECT * FROM items WHERE name = 'a\' FOR UPDATE -- '`, mysql, schedule.Writes}, // a read, unless NO_BACKSLASH_ESCAPES is set
		{"SELECT `for update` FROM items", mysql, schedule.Reads},
		{"SELECT stock /* FOR UPDATE */ FROM items", mysql, schedule.Reads},
		{"SELECT stock FROM items -- FOR UPDATE", mysql, schedule.Reads},
		{"SELECT stock FROM items # FOR UPDATE", mysql, schedule.Reads},
		{"SELECT stock FROM items --FOR UPDATE", mysql, schedule.Writes}, // not a comment in MySQL
		{"SELECT stock FROM items --FOR UPDATE", postgres, schedule.Reads},
		{"SELECT stock FROM items /*! FOR UPDATE */", mysql, schedule.Writes},
		{"SELECT stock FROM items /*!50000 FOR UPDATE */", mysql, schedule.Writes},
		{"SELECT stock FROM items /*M! FOR UPDATE */", mysql, schedule.Writes},
		{"SELECT stock FROM items /* /* */ FOR UPDATE", mysql, schedule.Writes},
		{"SELECT stock FROM items FOR UPDATE", mysql, schedule.Writes},
		{"SELECT stock FROM items\nfor\tupdate", mysql, schedule.Writes},
		{"SELECT stock FROM items FOR SHARE SKIP LOCKED", mysql, schedule.Writes},
		{"SELECT stock FROM items LOCK IN SHARE MODE", mysql, schedule.Writes},
		{"SELECT stock INTO @x FROM items", mysql, schedule.Writes},
		{"SELECT stock FROM items INTO OUTFILE '/tmp/x'", mysql, schedule.Writes},
		{"SELECT reserve(1)", mysql, schedule.Writes},
		{"SELECT shop.count(1)", mysql, schedule.Writes},
		{"SELECT `count`(1)", mysql, schedule.Writes},
		{"SELECT NOW (1)", mysql, schedule.Writes},
		{"SELECT count (*) FROM items", postgres, schedule.Reads},
		{"SELECT pg_catalog.lower(name) FROM items", postgres, schedule.Reads},
		{"SELECT shop.lower(name) FROM items", postgres, schedule.Writes},
		{"SELECT GET_LOCK('a', 1)", mysql, schedule.Writes},
		{"SELECT SLEEP(1)", mysql, schedule.Writes},
		{"SELECT LAST_INSERT_ID()", mysql, schedule.Reads},
		{"SELECT LAST_INSERT_ID(5)", mysql, schedule.Writes},
		{"SELECT NEXT VALUE FOR s", mysql, schedule.Writes},
		{"SELECT nextval('s')", postgres, schedule.Writes},
		{"SELECT pg_advisory_lock(1)", postgres, schedule.Writes},
		{"SELECT substring(name FROM 1 FOR 3) FROM items", postgres, schedule.Reads},
		{"SELECT * FROM items FOR SYSTEM_TIME ALL", mysql, schedule.Reads},
		{"SELECT replace(name, 'a', 'b') FROM items", mysql, schedule.Reads},
		{"SELECT $a$ $$ FOR UPDATE $a$ FROM items", postgres, schedule.Reads},
		{"SELECT E'\\' FOR UPDATE' FROM items WHERE id = $1", postgres, schedule.Reads},
		{`SELECT "for update" FROM items WHERE id = ANY($1)`, postgres, schedule.Reads},
		{"SELECT 1; DELETE FROM items", mysql, schedule.Writes},
		{"SELECT 1; SELECT 2", mysql, schedule.Writes},
		{"SELECT 'a", mysql, schedule.Writes},
		{"SELECT 1 /* ", mysql, schedule.Writes},
		{"WITH a AS (SELECT 1) SELECT * FROM a", mysql, schedule.Reads},
		{"WITH a AS (SELECT 1) UPDATE items SET stock = 0", mysql, schedule.Writes},
		{"EXPLAIN SELECT * FROM items", mysql, schedule.Reads},
		{"EXPLAIN ANALYZE SELECT * FROM items", mysql, schedule.Writes},
		{"EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM items", postgres, schedule.Writes},
		{"EXPLAIN UPDATE items SET stock = 0", mysql, schedule.Writes},
		{"EXPLAIN EXECUTE x", postgres, schedule.Writes},
		{"ANALYZE SELECT * FROM items", mysql, schedule.Writes},
		{"DESCRIBE items", mysql, schedule.Reads},
		{"SHOW FULL COLUMNS FROM items", mysql, schedule.Reads},
		{"BEGIN", mysql, schedule.Local},
		{"begin work;", mysql, schedule.Local},
		{"BEGIN NOT ATOMIC UPDATE items SET stock = 0; END", mysql, schedule.Writes},
		{"BEGIN ISOLATION LEVEL SERIALIZABLE", postgres, schedule.Local},
		{"START TRANSACTION", mysql, schedule.Local},
		{"START TRANSACTION READ ONLY", mysql, schedule.Local},
		{"START TRANSACTION WITH CONSISTENT SNAPSHOT", mysql, schedule.Reads},
		{"START SLAVE", mysql, schedule.Writes},
		{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", mysql, schedule.Local},
		{"SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED", mysql, schedule.Writes},
		{"SET NAMES utf8mb4", mysql, schedule.Local},
		{"SET autocommit = 1", mysql, schedule.Local},
		{"SET @x = (SELECT reserve(1))", mysql, schedule.Writes},
		{"COMMIT", mysql, schedule.Writes},
		{"ROLLBACK", mysql, schedule.Writes},
		{"SAVEPOINT a", mysql, schedule.Writes},
		{"INSERT INTO orders VALUES (1)", mysql, schedule.Writes},
		{"UPDATE items SET stock = stock - 1", mysql, schedule.Writes},
		{"CALL buy(1)", mysql, schedule.Writes},
		{"DO GET_LOCK('a', 1)", mysql, schedule.Writes},
		{"LOCK TABLES items WRITE", mysql, schedule.Writes},
		{"HANDLER items READ FIRST", mysql, schedule.Writes},
		{"", mysql, schedule.Local},
		{" ; -- nothing", mysql, schedule.Local},
		{"/*! COMMIT */", mysql, schedule.Writes},
		{"SET autocommit = 0", mysql, schedule.Local},
		{"SET @@session.autocommit=1, sql_mode=''", mysql, schedule.Local},
		{"SET `autocommit` = 1", mysql, schedule.Local},
		{"SET GLOBAL autocommit = 1", mysql, schedule.Writes},
		{"SET autocommit = f(1)", mysql, schedule.Writes},
		{"SELECT " + strings.Repeat("1,", 1<<20) + "1", mysql, schedule.Writes},
	} {
		if got := effect.SQL(c.sql, c.dialect).Effect; got != c.want {
			t.Errorf("%.80q (%d): %d, want %d", c.sql, c.dialect, got, c.want)
		}
	}
}

// TestPasses: statements that set up a connection pass the gate. A statement that can commit never
// does.
func TestPasses(t *testing.T) {
	for _, c := range []struct {
		sql     string
		dialect effect.Dialect
		want    bool
	}{
		{"SET NAMES utf8mb4", mysql, true},
		{"SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin'", mysql, true},
		{"set character set utf8", mysql, true},
		{"SET CHARSET utf8", mysql, true},
		{"SET character_set_results = NULL", mysql, true},
		{"SET time_zone = '+00:00'", mysql, true},
		{"SET @@session.time_zone := '+00:00'", mysql, true},
		{"SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')", mysql, true},
		{"SET @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode, ',A'), ',B'), @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483", mysql, true},
		{"SET SQL_AUTO_IS_NULL = 0", mysql, true},
		{"SET NAMES utf8, autocommit=0", mysql, false},
		{"SET NAMES utf8mb4, @@session.autocommit = 1", mysql, false},
		{"SET autocommit=1", mysql, false},
		{"set session autocommit = 0", mysql, false},
		{"SET sql_mode = '', `autocommit` = 1", mysql, false},
		{"SET GLOBAL sql_mode = ''", mysql, false},
		{"SET @@global.time_zone = '+00:00'", mysql, false},
		{"SET sql_mode = (SELECT f(1))", mysql, false},
		{"SET sql_mode = f(1)", mysql, false},
		{"SET @x = 1", mysql, false},
		{"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", mysql, false},
		{"SET STATEMENT max_statement_time=1 FOR UPDATE items SET stock = 0", mysql, false},
		{"SET PASSWORD = 'x'", mysql, false},
		{"SELECT @@version_comment LIMIT 1", mysql, true},
		{"SELECT @@max_allowed_packet, @@session.wait_timeout AS w", mysql, true},
		{"SELECT VERSION()", mysql, true},
		{"select database(), connection_id() as id", mysql, true},
		{"SELECT 1", mysql, true},
		{"SELECT 1 FROM DUAL", mysql, true},
		{"SELECT 1 FROM items", mysql, false},
		{"SELECT @@version, stock FROM items", mysql, false},
		{"SELECT @@version FROM items FOR UPDATE", mysql, false},
		{"SELECT 1 FOR UPDATE", mysql, false},
		{"SELECT 1 INTO @x", mysql, false},
		{"SELECT @@version; COMMIT", mysql, false},
		{"SELECT VERSION(), f()", mysql, false},
		{"SELECT NOW()", mysql, false},
		{"SELECT stock", mysql, false},
		{"/* mysql-connector-java-8.0.33 (Revision: 7d6b0800528b6b25c68b52dc10d6c1c8429c100c) */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client", mysql, true},
		{"/* mysql-connector-java-5.1 */SHOW VARIABLES WHERE Variable_name ='language' OR Variable_name = 'net_write_timeout'", mysql, true},
		{"SHOW SESSION VARIABLES LIKE 'x'", mysql, true},
		{"SHOW VARIABLES WHERE f(1)", mysql, false},
		{"SHOW GLOBAL STATUS", mysql, true},
		{"SHOW WARNINGS", mysql, true},
		{"SHOW COUNT(*) WARNINGS", mysql, true},
		{"SHOW TABLES", mysql, false},
		{"USE shop", mysql, true},
		{"USE `shop`", mysql, true},
		{"/*! COMMIT */ USE shop", mysql, false},
		{"BEGIN", mysql, false},
		{"UPDATE items SET stock = 0", mysql, false},
		{"", mysql, true},
		{"/* ping */", mysql, true},
		{";", postgres, true},
		{"SET client_encoding TO 'UTF8'", postgres, true},
		{"SET TIME ZONE 'UTC'", postgres, true},
		{"SET SESSION extra_float_digits = 3", postgres, true},
		{"SELECT current_schema", postgres, true},
		{"SELECT set_config('search_path', '', false)", postgres, false},
		{"DISCARD ALL", postgres, false},
	} {
		if got := !effect.SQL(c.sql, c.dialect).Waits(false, false); got != c.want {
			t.Errorf("%q (%d): %t, want %t", c.sql, c.dialect, got, c.want)
		}
	}
}

func TestEnds(t *testing.T) {
	for sql, want := range map[string]bool{
		"COMMIT": true, "commit work and chain": true, "ROLLBACK": true, "/* x */ ROLLBACK;": true,
		"ROLLBACK TO a": false, "ROLLBACK WORK TO SAVEPOINT a": false, "SELECT 'COMMIT'": false, "BEGIN": false,
		"UPDATE a SET b = 1; COMMIT": true, "XA COMMIT 'x'": true, "XA START 'x'": false, "SET NAMES utf8, autocommit=1": true,
		"SET NAMES utf8": false, "CREATE TABLE a (b INT)": true, "CREATE TEMPORARY TABLE a (b INT)": false, "TRUNCATE a": true,
	} {
		if got := effect.SQL(sql, mysql).Ends; got != want {
			t.Errorf("%q: %t, want %t", sql, got, want)
		}
	}
	for sql, want := range map[string]bool{
		"END": true, "ABORT": true, "COMMIT PREPARED 'a'": false, "PREPARE TRANSACTION 'a'": true, "CREATE TABLE a (b INT)": false,
		"ROLLBACK TRANSACTION TO SAVEPOINT a": false,
	} {
		if got := effect.SQL(sql, postgres).Ends; got != want {
			t.Errorf("%q: %t, want %t", sql, got, want)
		}
	}
}

func TestNamedLock(t *testing.T) {
	for _, c := range []struct {
		sql     string
		dialect effect.Dialect
		want    bool
	}{
		{"SELECT get_lock('a', 1)", mysql, true},
		{"DO GET_LOCK ('a', 1)", mysql, true},
		{"SELECT 'GET_LOCK(1)'", mysql, false},
		{"SELECT RELEASE_LOCK('a')", mysql, false},
		{"SELECT pg_advisory_xact_lock(1)", postgres, true},
		{"SELECT pg_try_advisory_lock(1)", postgres, false},
		{"SELECT pg_advisory_unlock(1)", postgres, false},
	} {
		if got := effect.SQL(c.sql, c.dialect).NamedLock; got != c.want {
			t.Errorf("%q: %t, want %t", c.sql, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		sql     string
		dialect effect.Dialect
		values  []string
		want    string
	}{
		{" SELECT\n\t1 ", mysql, nil, "SELECT 1"},
		{"SELECT /* request 7 */ 1 -- x\nFROM a", mysql, nil, "SELECT 1 FROM a"},
		{"SELECT '?', a FROM b WHERE c = ? AND d=?", mysql, []string{"1", "'x'"}, "SELECT '?', a FROM b WHERE c = 1 AND d='x'"},
		{"SELECT ?, ?", mysql, []string{"1"}, "SELECT 1, ?"},
		{"SELECT $2, $1, $2, $3", postgres, []string{"1", "2"}, "SELECT 2, 1, 2, $3"},
		{"SELECT 'a\nb'", mysql, nil, "SELECT 'a b'"},
		{"/*!40101 SET NAMES\nutf8 */", mysql, nil, "/*!40101 SET NAMES utf8 */"},
		{"SELECT '\xff'", mysql, nil, "SELECT '\uFFFD'"},
		{"SELECT 'a", mysql, nil, "SELECT 'a"},
		{"SELECT '" + strings.Repeat("a", 5000) + "'", mysql, nil, "SELECT '" + strings.Repeat("a", 1992) + "... (5009 bytes)"},
	} {
		if got := effect.Line(c.sql, c.dialect, c.values...); got != c.want {
			t.Errorf("%q: %q, want %q", c.sql, got, c.want)
		}
	}
	if n := effect.Placeholders("SELECT ?, '?', `?`, \"?\" /* ? */, ?", mysql); n != 2 {
		t.Errorf("%d placeholders, want 2", n)
	}
	for value, want := range map[string]string{
		"a": "'a'", "it's": "'it''s'", "\x00\x01": "x'0001'", "": "''", strings.Repeat("é", 100): "'" + strings.Repeat("é", 50) + "'... (200 bytes)",
	} {
		if got := effect.Quote([]byte(value)); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

// TestCompound: a text of several statements is compound if more than one of them can interact with
// another buyer's.
func TestCompound(t *testing.T) {
	for _, c := range []struct {
		sql     string
		dialect effect.Dialect
		want    bool
	}{
		{"SELECT 1 FROM items;", mysql, false},
		{"SELECT stock FROM items; UPDATE items SET stock = 0", mysql, true},
		{"SELECT stock FROM items; UPDATE items SET stock = 0", postgres, true},
		{"BEGIN; SELECT stock FROM items FOR UPDATE", mysql, false},
		{"BEGIN; SELECT stock FROM items FOR UPDATE; UPDATE items SET stock = 0", postgres, true},
		{"SET NAMES utf8mb4; SELECT stock FROM items", mysql, false},
		{"INSERT INTO orders VALUES ('a;b')", mysql, false},
		{`INSERT INTO orders VALUES ('a\'; b')`, mysql, true}, // with NO_BACKSLASH_ESCAPES these are two statements
		{"INSERT INTO orders SELECT * FROM baskets", mysql, false},
		{"CALL buy(1)", mysql, true},
		{"call buy(1)", postgres, true},
		{"DO SLEEP(1)", mysql, false},
		{"DO $$ BEGIN UPDATE items SET stock = 0; END $$", postgres, true},
		{"BEGIN NOT ATOMIC UPDATE items SET stock = 0; END", mysql, true},
		{"BEGIN", mysql, false},
		{"BEGIN ISOLATION LEVEL SERIALIZABLE", postgres, false},
		{"", mysql, false},
	} {
		if got := effect.SQL(c.sql, c.dialect).Compound; got != c.want {
			t.Errorf("%q (%d): %t, want %t", c.sql, c.dialect, got, c.want)
		}
	}
}

// FuzzStatement: every text is classified without a panic. A statement at the gate never both
// passes and ends a transaction.
func FuzzStatement(f *testing.F) {
	for _, seed := range []string{
		"SELECT 1", "SET NAMES utf8, autocommit=0", "SELECT 'a\\'", "/*!", "/* /* */", "$a$", "$1", "E'\\", "@@session.x", "SELECT @@", "SHOW COUNT(*)",
		"SELECT pg_catalog.", "(((", "SELECT f(", "`", "BEGIN;", "SELECT ? FROM \"a", "SET @@x = ",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		for _, d := range []effect.Dialect{mysql, postgres} {
			s := effect.SQL(sql, d)
			if !s.Waits(false, false) && s.Ends {
				t.Errorf("%q passes, and ends a transaction", sql)
			}
			if s.Effect == schedule.Reads && (s.Ends || s.NamedLock) {
				t.Errorf("%q reads, and ends a transaction or locks", sql)
			}
			if line := effect.Line(sql, d, "1"); strings.ContainsAny(line, "\n\r\t") {
				t.Errorf("%q is not one line", line)
			}
			_ = effect.Placeholders(sql, d)
			_ = effect.Quote([]byte(sql))
		}
	})
}
