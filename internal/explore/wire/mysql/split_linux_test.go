package mysql_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/mysql"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
)

// TestSplit: the program gets the same bytes whether a statement is executed in two steps or in one.
// Another connection sees the changes only after the second step.
func TestSplit(t *testing.T) {
	address, password := mariadb(t)
	other := admin(t)
	statements := []struct {
		sql   string
		args  []any
		split bool
	}{
		{"INSERT INTO split (a) VALUES (1)", nil, true},
		{"INSERT INTO split (a) VALUES (?)", []any{2}, true},
		{"INSERT INTO split (a) VALUES (3), (4) RETURNING id, a", nil, true},
		{"INSERT INTO split (a) VALUES (1)", nil, true}, // a duplicate
		{"UPDATE split SET a = a + 10", nil, true},
		{"UPDATE split SET a = ? WHERE a = ?", []any{0, 99}, true},
		{"DELETE FROM split WHERE a > 12", nil, true},
		{"INSERT INTO split (a) VALUES (30); INSERT INTO split (a) VALUES (31)", nil, false},
		{"CALL splits()", nil, false},
		{"BEGIN", nil, false},
		{"INSERT INTO split (a) VALUES (5)", nil, false},
		{"COMMIT", nil, false},
		{"LOCK TABLES split WRITE", nil, false},
		{"INSERT INTO split (a) VALUES (7)", nil, false},
		{"UNLOCK TABLES", nil, false},
		{"SET autocommit = 0", nil, false},
		{"INSERT INTO split (a) VALUES (6)", nil, false},
		{"SET autocommit = 1", nil, false},
		{"INSERT INTO split (a) VALUES (8)", nil, true},
	}
	var split, early []string
	sum := func() string { return wiretest.One(t, other, "SELECT COALESCE(SUM(a), 0) FROM split") }
	said := func(between func(*wire.Command)) []string {
		wiretest.Exec(t, other, "CREATE OR REPLACE TABLE split (id INT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE); CREATE OR REPLACE PROCEDURE splits() INSERT INTO split (a) VALUES (20)")
		g := wiretest.NewSplitting(between)
		db := open(t, wiretest.Proxy(t, g, mysql.Protocol(nil), address), password, "multiStatements=true")
		for _, s := range statements {
			before := ""
			if s.split { // if not split, a locked table could block this query
				before = sum()
			}
			if rows, err := db.Query(s.sql, s.args...); err == nil {
				for rows.Next() {
				}
				rows.Close()
			}
			if between != nil && s.split && len(early) > 0 && early[len(early)-1] != before {
				t.Errorf("%s: another connection saw %s between the steps, and %s before", s.sql, early[len(early)-1], before)
			}
		}
		_ = db.Close()
		return g.Answers(t)
	}
	plain := said(nil)
	twice := said(func(o *wire.Command) {
		split = append(split, o.Text)
		early = append(early, sum())
	})
	if len(plain) < len(statements) || !slices.Equal(plain, twice) {
		t.Errorf("one step:\n%q\ntwo:\n%q", plain, twice)
	}
	var want []string
	for _, s := range statements {
		if s.split {
			want = append(want, strings.Replace(strings.Replace(s.sql, "(?)", "(2)", 1), "a = ? WHERE a = ?", "a = 0 WHERE a = 99", 1))
		}
	}
	if !slices.Equal(split, want) {
		t.Errorf("two steps for %q, want %q", split, want)
	}
}
