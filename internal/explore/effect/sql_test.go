package effect_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/require"
)

const (
	mysql    = effect.MySQL
	postgres = effect.Postgres
)

// properties are the sections of testdata/statements.txt.
var properties = map[string]func(sql string, d effect.Dialect) string{
	"effect":     func(sql string, d effect.Dialect) string { return effectNames[effect.SQL(sql, d).Effect] },
	"passes":     func(sql string, d effect.Dialect) string { return fmt.Sprint(!effect.SQL(sql, d).Waits(false, false)) },
	"ends":       func(sql string, d effect.Dialect) string { return fmt.Sprint(effect.SQL(sql, d).Ends) },
	"named lock": func(sql string, d effect.Dialect) string { return fmt.Sprint(effect.SQL(sql, d).NamedLock) },
	"compound":   func(sql string, d effect.Dialect) string { return fmt.Sprint(effect.SQL(sql, d).Compound) },
	"alters":     func(sql string, d effect.Dialect) string { return fmt.Sprint(effect.SQL(sql, d).Alters) },
	"waits": func(sql string, d effect.Dialect) string {
		s := effect.SQL(sql, d)
		text := effectNames[s.Effect] + " "
		for _, in := range []struct {
			name                     string
			inTransaction, snapshots bool
		}{{"a", false, false}, {"b", true, false}, {"c", true, true}} {
			if s.Waits(in.inTransaction, in.snapshots) {
				text += in.name
			}
		}
		return strings.TrimSpace(text)
	},
	"inside": func(sql string, d effect.Dialect) string {
		return map[effect.Inside]string{effect.Atomic: "atomic", effect.Lockable: "lockable", effect.Divided: "divided"}[effect.SQL(sql, d).Inside]
	},
	"inserts only": func(sql string, d effect.Dialect) string { return fmt.Sprint(effect.InsertsOnly(sql, d)) },
	"relations":    func(sql string, d effect.Dialect) string { return strings.Join(effect.Relations(sql, d), " ") },
	"accesses": func(sql string, _ effect.Dialect) string {
		return said(effect.Accesses(sql, func(_, column string) bool { return slices.Contains([]string{"id", "a", "b", "fk"}, column) }))
	},
}

var effectNames = map[schedule.Effect]string{schedule.Local: "local", schedule.Reads: "reads", schedule.Writes: "writes"}

// TestStatements compares every line of testdata/statements.txt with the result of the package.
func TestStatements(t *testing.T) {
	text, err := os.ReadFile("testdata/statements.txt")
	require.NoError(t, err)
	dialects := map[string][]effect.Dialect{"mysql": {mysql}, "postgres": {postgres}, "both": {mysql, postgres}}
	section, lines := "", map[string]int{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if name, begins := strings.CutPrefix(line, "## "); begins {
			section = name
		}
		if line == "" || line[0] == '#' {
			continue
		}
		dialect, rest, _ := strings.Cut(line, ": ")
		sql, want, ok := strings.Cut(rest, " =>")
		if plain, err := strconv.Unquote(sql); err == nil {
			sql = plain
		}
		if !ok || dialects[dialect] == nil || properties[section] == nil {
			t.Fatalf("%s: no line such as mysql: STATEMENT => RESULT: %s", section, line)
		}
		lines[section]++
		for _, d := range dialects[dialect] {
			if got := strings.TrimSpace(properties[section](sql, d)); got != strings.TrimSpace(want) {
				t.Errorf("%s: %q (%d): %q, want %q", section, sql, d, got, strings.TrimSpace(want))
			}
		}
	}
	if len(lines) != len(properties) {
		t.Errorf("lines %v; want some in each of %d sections", lines, len(properties))
	}
	if got := effect.SQL("SELECT "+strings.Repeat("1,", 1<<20)+"1", mysql).Effect; got != schedule.Writes {
		t.Errorf("a statement of 2 MB: %d", got)
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

// TestDisjoint: two statements touch different rows if their conditions compare one column with
// different literals, and neither statement changes that column.
func TestDisjoint(t *testing.T) {
	const (
		one  = "UPDATE items SET stock = stock - 1 WHERE id = 1"
		id   = "6f0e4c6e-0000-4000-8000-000000000001"
		id2  = "6f0e4c6e-0000-4000-8000-000000000002"
		noon = "UPDATE items SET stock = 0 WHERE "
	)
	for other, want := range map[string]bool{
		"UPDATE items SET stock = 0 WHERE id = 2":                     true,
		"DELETE FROM items WHERE id = 2 AND stock > 0":                true,
		"UPDATE items SET stock = 0 WHERE stock > 0 AND items.id = 2": true,
		"DELETE FROM items WHERE (stock > 0) AND id = 2 LIMIT 1":      true,
		one:                                    false,
		noon + "id = 1":                        false,
		noon + "id > 2":                        false,
		noon + "id = 2 OR stock = 1":           false,
		noon + "NOT id = 2":                    false,
		noon + "(id = 2)":                      false,
		noon + "id = 2 + 0":                    false,
		noon + "id = 02":                       false,
		noon + "id = '2'":                      false,
		noon + "stock = 2":                     false,
		noon + "id = 2 AND x IN (SELECT 1)":    false,
		"UPDATE items SET stock = 0":           false,
		"UPDATE items SET id = 1 WHERE id = 2": false,
		"UPDATE items JOIN shops SET stock = 0 WHERE shops.id = 2":   false,
		"UPDATE items, shops SET stock = 0 WHERE shops.id = 2":       false,
		"INSERT INTO items SELECT 2 WHERE id = 2":                    false,
		"UPDATE items SET stock = 0 WHERE id = 2; DELETE FROM items": false,
		"UPDATE items SET stock = 0 FROM shops WHERE shops.id = 2":   false,
	} {
		for _, d := range []effect.Dialect{effect.MySQL, effect.Postgres} {
			if got := effect.Disjoint(one, other, d) && effect.Disjoint(other, one, d); got != want {
				t.Errorf("%s: %v, want %v", other, got, want)
			}
		}
	}
	if !effect.Disjoint(noon+"id = '"+id+"'", noon+"id = '"+id2+"'", effect.Postgres) || effect.Disjoint(noon+"id = '"+id+"'", noon+"id = '"+id+"'", effect.Postgres) {
		t.Error("two UUIDs are two rows, and one is one")
	}
}

// FuzzStatement: no text causes a panic. A statement that ends a transaction never passes the gate
// without a stop.
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

func said(a effect.Access, ok bool) string {
	if !ok {
		return "-"
	}
	var reads, sets []string
	for _, r := range a.Reads {
		one := r.Table
		for _, c := range slices.Sorted(maps.Keys(r.Fixed)) {
			one += " " + c + "=" + strings.Join(r.Fixed[c], ",")
		}
		reads = append(reads, one)
	}
	for _, v := range a.Sets {
		one := ""
		for _, c := range slices.Sorted(maps.Keys(v)) {
			value := "?"
			if v[c] != nil {
				value = strings.TrimPrefix(*v[c], "\x00")
			}
			one += fmt.Sprintf(" %s=%s", c, value)
		}
		sets = append(sets, one)
	}
	text := strings.Join(reads, "; ")
	if a.Verb == "INSERT" {
		text = a.Finds.Table
	}
	if len(sets) > 0 {
		text += " <-" + strings.Join(sets, " |")
	}
	if a.None {
		text += " none"
	}
	if a.Locks {
		text = "locks " + text
	}
	return text
}

// TestResets: only a text that does nothing but reset the connection counts as a reset.
func TestResets(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;": true, "DISCARD ALL": true, "reset all": true,
		"SELECT pg_advisory_unlock(1); RESET ALL": false, "RESET ALL; DELETE FROM items": false, "": false, "RESET ALL; /*": false,
	} {
		if got := effect.SQL(sql, postgres).Resets; got != want {
			t.Errorf("%q: %t, want %t", sql, got, want)
		}
	}
}
