package app

import (
	"database/sql"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// dumpedPostgres is a schema that is difficult to dump: a role, routines in dollar quotes and in SQL,
// an identity column, a small integer, and rows with characters that COPY escapes.
const dumpedPostgres = `CREATE ROLE "Shop Owner" LOGIN;
CREATE ROLE reader;
CREATE TABLE items (id INT PRIMARY KEY, stock SMALLINT NOT NULL, note TEXT);
CREATE TABLE orders (id SERIAL PRIMARY KEY, number SMALLSERIAL, item_id INT NOT NULL REFERENCES items, buyer TEXT);
CREATE TABLE big (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v TEXT);
ALTER TABLE orders OWNER TO "Shop Owner";
GRANT SELECT ON items TO reader;
INSERT INTO items VALUES (1, 1, E'semi; colon\n\\. tab\t'' quote $x$'), (2, 5, NULL);
INSERT INTO orders (item_id, buyer) VALUES (2, 'x');
INSERT INTO big (v) VALUES ('a');
SELECT setval('big_id_seq', 2000000);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN NEW.note := 'a;b'; RETURN NEW; END $body$;
CREATE TRIGGER tr BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION f();
CREATE FUNCTION g(a int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT a + 1; SELECT a + 2; END;
CREATE VIEW v AS SELECT * FROM items WHERE stock > 0;
`

// dumpedMySQL is a schema of MySQL that is difficult to dump: routines with DELIMITER and with a definer
// that the private server does not have, and rows with quotes and binary data.
const dumpedMySQL = `CREATE TABLE items (id INT PRIMARY KEY, stock INT NOT NULL, note TEXT);
CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, item_id INT NOT NULL, buyer CHAR(36), FOREIGN KEY (item_id) REFERENCES items (id));
CREATE TABLE small (id SMALLINT AUTO_INCREMENT PRIMARY KEY, b BLOB);
INSERT INTO items VALUES (1, 1, 'semi; colon -- no\n\\ '' DELIMITER ;; "'), (2, 5, NULL);
INSERT INTO orders (item_id, buyer) VALUES (2, 'x');
INSERT INTO small (b) VALUES (X'00FF27225C0A');
DELIMITER //
CREATE DEFINER='gone'@'%' TRIGGER tr BEFORE INSERT ON orders FOR EACH ROW BEGIN SET NEW.buyer = CONCAT(NEW.buyer, ';'); END//
CREATE DEFINER='gone'@'%' PROCEDURE p() BEGIN SELECT 1; SELECT 2; END//
DELIMITER ;
CREATE DEFINER='gone'@'%' SQL SECURITY DEFINER VIEW v AS SELECT * FROM items WHERE stock > 0;
`

func withSchema(t *testing.T, protocol, schema string) *App {
	t.Helper()
	dir := t.TempDir()
	text := strings.Replace(sound, "mysql: 127.0.0.1:3306\nredis: 127.0.0.1:6379", protocol+": 127.0.0.1:3306\nlocal: true\nschema: dump.sql", 1)
	text = strings.Replace(text, ", redis: flushdb", "", 1)
	for name, content := range map[string]string{"oversell.yaml": text, "dump.sql": schema} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	a, err := Load(filepath.Join(dir, "oversell.yaml"))
	must(t, err)
	return a
}

func dumped(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(out)
}

// TestDumpPostgres: `schema` can be a dump of pg_dump --create. The dump's database keeps its own name,
// and loses its locale, which this machine lacks.
func TestDumpPostgres(t *testing.T) {
	tier.Test(t, "needs servers")
	source := localservertest.Postgres(t)
	db, err := sql.Open("pgx", source.URL())
	must(t, err)
	defer db.Close()
	_, err = loadPostgres(t.Context(), db, source, []script{{text: dumpedPostgres}})
	must(t, err)
	text := dumped(t, "pg_dump", "--create", "--clean", "--dbname="+source.URL())
	text = regexp.MustCompile(`(DATABASE|\\connect) shop\b`).ReplaceAllString(text, "$1 webshop")
	text = strings.Replace(text, "LOCALE = ", "LOCALE = 'not_here' -- ", 1)
	text = regexp.MustCompile(`(-- .*);\n`).ReplaceAllString(text, "$1\n;\n")
	s, err := Open(t.Context(), withSchema(t, "postgres", text))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for query, want := range map[string]string{
		"SELECT current_database()":                                                     "webshop",
		"SELECT note FROM items WHERE id = 1":                                           "semi; colon\n\\. tab\t' quote $x$",
		"SELECT count(*) FROM v WHERE id < 3":                                           "2",
		"SELECT g(5)":                                                                   "7",
		"SELECT tableowner FROM pg_tables WHERE tablename = 'orders'":                   "Shop Owner",
		"INSERT INTO items VALUES (3, 1, '') RETURNING note":                            "a;b",
		"INSERT INTO orders (item_id) VALUES (1) RETURNING id || ' ' || number":         "3000001 2", // differs from the ids of the table big
		"INSERT INTO big (v) VALUES ('b') RETURNING id":                                 "2000001",
		"SELECT has_table_privilege('reader', 'items', 'SELECT')":                       "true",
		"SELECT rolcanlogin FROM pg_roles WHERE rolname = 'Shop Owner' AND rolcanlogin": "true",
	} {
		_, got, err := rows(t.Context(), s.SQL("postgres"), query, 1)
		if err != nil || len(got) != 1 || got[0][0] != want {
			t.Errorf("%s: %q, %v; want %q", query, got, err, want)
		}
	}
}

// TestDumpMySQL: `schema` can be a dump of mysqldump --databases. The dump's database keeps its own
// name.
func TestDumpMySQL(t *testing.T) {
	tier.Test(t, "needs servers")
	source := localservertest.MySQL(t)
	u, err := url.Parse(source.URL())
	must(t, err)
	password, _ := u.User.Password()
	_, err = loadMySQL(t.Context(), source, []script{{text: dumpedMySQL}})
	must(t, err)
	login := []string{"--no-defaults", "-h", u.Hostname(), "-P", u.Port(), "-u", u.User.Username(), "-p" + password, "--routines"}
	text := dumped(t, "mysqldump", append(login, "--add-drop-database", "--databases", "shop")...)
	account := regexp.MustCompile("DEFINER=`[^`]*`@`[^`]*`")
	if len(account.FindAllString(text, -1)) < 3 {
		t.Fatalf("the dump has no definers: %s", text)
	}
	text = account.ReplaceAllString(text, "DEFINER=`gone`@`%`")
	text = strings.ReplaceAll(text, "`shop`", "`webshop`")
	s, err := Open(t.Context(), withSchema(t, "mysql", text))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	s.exec(t, "mysql", "INSERT INTO orders (item_id, buyer) VALUES (1, 'y')")
	s.exec(t, "mysql", "INSERT INTO small (b) VALUES ('')")
	for query, want := range map[string]string{
		"SELECT DATABASE()":                       "webshop",
		"SELECT note FROM items WHERE id = 1":     "semi; colon -- no\n\\ ' DELIMITER ;; \"",
		"SELECT COUNT(*) FROM v":                  "2",
		"SELECT buyer FROM orders WHERE id > 1":   "y;",
		"SELECT MAX(id) FROM orders":              "1000001",
		"SELECT MAX(id) FROM small":               "2",
		"SELECT HEX(b) FROM small WHERE id = 1":   "00FF27225C0A",
		"CALL p()":                                "1",
		"SELECT @@SESSION.foreign_key_checks":     "1",
		"SELECT COUNT(*) FROM items WHERE id = 2": "1",
	} {
		_, got, err := rows(t.Context(), s.SQL("mysql"), query, 1)
		if err != nil || len(got) != 1 || got[0][0] != want {
			t.Errorf("%s: %q, %v; want %q", query, got, err, want)
		}
	}
}

// TestClients: a script may contain commands of the client, which run in the script's folder. An error
// is one line, with the script's name and the client's message.
func TestClients(t *testing.T) {
	tier.Test(t, "needs servers")
	my, err := Open(t.Context(), withSchema(t, "mysql", "SELECT 1"))
	must(t, err)
	pg, err := Open(t.Context(), withSchema(t, "postgres", "SELECT 1"))
	must(t, err)
	defer func() { must(t, errors.Join(my.Close(), pg.Close())) }()
	load := func(protocol string, scripts ...script) (string, error) {
		if protocol == "mysql" {
			return loadMySQL(t.Context(), my.mysql, scripts)
		}
		return loadPostgres(t.Context(), pg.SQL("postgres"), pg.postgres, scripts)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tables.sql"), []byte("CREATE TABLE included (b INT);\n"), 0o600))
	for _, c := range []struct{ name, protocol, schema, says string }{
		{"a file of psql", "postgres", "SELECT 1;\n\\i tables.sql\nDROP TABLE included;\n", ""},
		{"no file", "postgres", "SELECT 1;\n\\i none.sql\n", "schema: a.sql: psql: line 2: error: none.sql: No such file or directory"},
		{"no such database", "postgres", "\\connect elsewhere\n", `schema: a.sql: psql: line 1: error: \connect: `},
		{"a row that does not fit", "postgres", "CREATE TABLE a (b INT);\n\nCOPY a (b) FROM stdin;\n1\nx\n\\.\nSELECT 1;\n", "invalid input syntax for type integer: \"x\""},
		{"a slip", "postgres", "CREATE TABLE e (b INT);\nCREATE TABLE c (\n  d TEXTT\n);\n", "schema: a.sql: psql: line 4: ERROR: type \"textt\" does not exist"},
		{"a table twice", "postgres", "CREATE TABLE f (b INT);\nCREATE TABLE f (b INT);\n", `schema: a.sql: psql: line 2: ERROR: relation "f" already exists`},
		{"a later version's dump", "postgres", "\\restrict x\nSET later_setting = 0;\nCREATE SCHEMA public;\n\\unrestrict x\n", ""},
		{"a file of mysql", "mysql", "SELECT 1;\nsource tables.sql\nDROP TABLE included;", ""},
		{"no end", "mysql", "CREATE TABLE g (b INT)", ""},
		{"no end, and a comment", "mysql", "CREATE TABLE h (b INT) -- end", ""},
		{"a comment at the end", "mysql", "CREATE TABLE i (b INT);\n/* end */\n", ""},
		{"no end of a procedure", "mysql", "DELIMITER //\nCREATE PROCEDURE j() BEGIN SELECT 1; END", ""},
		{"a slip in MySQL", "mysql", "-- a\nCREATE TABLE a (b INT);\nCREATE TABEL c (d INT);\n", "schema: a.sql: mariadb: ERROR 1064 (42000) at line 3: "},
	} {
		switch _, err := load(c.protocol, script{"a.sql", dir, c.schema}); {
		case c.says == "":
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case err == nil, !strings.Contains(err.Error(), c.says), strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: %v; want one line with %q", c.name, err, c.says)
		}
	}
	for protocol, create := range map[string]string{"mysql": "CREATE DATABASE two;\nUSE two;\nDELIMITER //\nSELECT 1", "postgres": "CREATE DATABASE two;\n\\connect two\n"} {
		database, err := load(protocol, script{text: create}, script{text: "CREATE TABLE there (a INT); -- no\nSELECT 'a\nuse b'"})
		if err != nil || database != "two" {
			t.Errorf("%s: the scripts end in %q, %v; want two", protocol, database, err)
		}
	}
	for text, says := range map[string]string{
		"PGDMP\x01": "dump.sql is an archive of pg_dump; turn it into SQL with: pg_restore -f schema.sql FILE", "\x1f\x8b\x08": "dump.sql is compressed; unpack it with gunzip",
	} {
		if _, err := readSchema(withSchema(t, "mysql", text).Schema); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want %q", err, says)
		}
	}
}
