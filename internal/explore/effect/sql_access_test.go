package effect_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/effect"
)

// TestAccesses: a column counts as fixed only if no row with another value of it can matter. A statement
// that is not understood in all parts has no Access.
func TestAccesses(t *testing.T) {
	has := func(table, column string) bool { return slices.Contains([]string{"id", "a", "b", "fk"}, column) }
	for sql, want := range map[string]string{
		`SELECT * FROM t WHERE id = 1`:                                          "t id=1",
		`SELECT * FROM s."T" AS x WHERE (("x"."id" IN (1, '2'))) AND x.a = 'b'`: "t a=b id=1,2",
		`SELECT * FROM t WHERE id = 1 OR a = 2`:                                 "t",
		`SELECT * FROM t WHERE NOT (id = 1)`:                                    "t",
		`SELECT * FROM t WHERE id = 1 + 1`:                                      "t",
		`SELECT * FROM t WHERE id <> 1`:                                         "t",
		`SELECT * FROM t WHERE a BETWEEN 1 AND id = 2`:                          "t",
		`SELECT * FROM t WHERE id = 01 AND none = 1`:                            "t",
		`SELECT * FROM t WHERE id = '<orders:1>' AND a = <orders.2b>`:           "t a=<orders.2b> id=<orders:1>",
		`SELECT * FROM t LEFT JOIN u ON u.fk = t.id WHERE t.id = 1`:             "t id=1; u fk=1",
		`SELECT * FROM t LEFT JOIN u ON u.fk = t.id AND u.a = 2 WHERE t.a = 3`:  "t a=3; u a=2",
		`SELECT * FROM t LEFT JOIN u ON t.id = 1`:                               "t; u",
		`SELECT * FROM t LEFT JOIN u ON u.fk = t.id WHERE u.id = 1`:             "t; u id=1",
		`SELECT * FROM t JOIN u ON u.fk = t.id WHERE u.fk = 1`:                  "t id=1; u fk=1",
		`SELECT * FROM t, u WHERE u.fk = t.id AND t.id = 1`:                     "t id=1; u fk=1",
		`SELECT * FROM t RIGHT JOIN u ON u.fk = t.id WHERE t.id = 1`:            "-",
		`SELECT * FROM t NATURAL JOIN u WHERE t.id = 1`:                         "-",
		`SELECT * FROM (SELECT id FROM t WHERE a = 1) x ORDER BY x.id LIMIT 1`:  "t a=1",
		`SELECT * FROM t WHERE id = 1 AND EXISTS (SELECT 1 FROM u WHERE b = 2)`: "u b=2; t id=1",
		`SELECT (SELECT max(id) FROM u) FROM t WHERE id = 1`:                    "u; t id=1",
		`SELECT id FROM t WHERE id = 1 UNION SELECT id FROM u WHERE id = 2`:     "t id=1; u id=2",
		`SELECT id FROM t WHERE a IS DISTINCT FROM b AND id = 1`:                "t id=1",
		`SELECT extract(epoch FROM a) FROM t WHERE id = 1`:                      "-",
		`WITH x AS (SELECT 1) SELECT * FROM t WHERE id = 1`:                     "-",
		`SELECT * FROM generate_series(1, 2) WHERE id = 1`:                      "-",
		`SELECT * FROM t WHERE id = 1 FOR UPDATE`:                               "locks t id=1",
		`SELECT * FROM t WHERE id = 1 FOR UPDATE SKIP LOCKED`:                   "-",
		`SELECT * FROM (SELECT * FROM t FOR UPDATE) x`:                          "-",
		`SELECT * FROM t WHERE id = 1; SELECT 1`:                                "-",
		`UPDATE t SET a = 1, b = now(), fk = NULL WHERE id IN (2)`:              "t id=2 <- a=1 b=? fk=null",
		`UPDATE t SET a = 1 FROM u WHERE t.id = u.id AND t.id = 1`:              "-",
		`UPDATE t SET (a, b) = (1, 2) WHERE id = 1`:                             "-",
		`UPDATE t SET a = (SELECT max(a) FROM u) WHERE id = 1 RETURNING a`:      "u; t id=1 <- a=?",
		`UPDATE t SET a = 1 WHERE 0=1`:                                          " <- a=1 none",
		`SELECT count(*) FROM t WHERE (1 = 2)`:                                  "",
		`SELECT * FROM t LEFT JOIN u ON 0 = 1 WHERE 1 = 1`:                      "t; u",
		`SELECT * FROM t WHERE a = 1 OR 0 = 1`:                                  "t",
		`DELETE FROM t WHERE id = 1`:                                            "t id=1",
		`DELETE FROM t USING u WHERE t.id = u.id`:                               "-",
		`INSERT INTO t (id, a) VALUES (DEFAULT, 1), (3, 'x') RETURNING id`:      "t <- a=1 id=default | a=x id=3",
		`INSERT INTO t (id) VALUES (1) ON CONFLICT DO NOTHING`:                  "-",
		`INSERT INTO t (id) SELECT id FROM u`:                                   "-",
		`INSERT INTO t VALUES (1)`:                                              "-",
		`TRUNCATE t`:                                                            "-",
	} {
		a, ok := effect.Accesses(sql, has)
		if got := said(a, ok); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}

// said writes an Access in one line.
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
