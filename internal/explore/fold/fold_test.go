package fold

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// tables are the tables of the runs below. An order line references the stock, and its deletion also deletes its notes.
func tables() map[string]serverstate.Tables {
	return map[string]serverstate.Tables{"postgres": {
		"stock":      {Deletes: []string{"order_line"}},
		"order_line": {Reads: []string{"stock"}, Deletes: []string{"note"}, Updates: []string{"note"}},
		"note":       {Reads: []string{"order_line"}},
		"setting":    {}, "own_1": {}, "own_2": {}, "day": {Parts: []string{"year"}}, "year": {Parts: []string{"day"}},
		"logged": {Fires: true}, "free": {View: true, Opaque: true}, "copies": {Reads: []string{"setting"}},
	}}
}

// sql returns steps of a buyer on its first connection.
func sql(buyer int, commands ...string) (all []witness.Step) {
	for _, c := range commands {
		all = append(all, witness.Step{Buyer: buyer, Server: "postgres", Command: c, Result: "ok", Connection: int64(buyer)})
	}
	return all
}

// two returns a run of two buyers. Each makes its given steps, reads settings, and then buys: it reads the stock and
// writes it.
func two(first, second []witness.Step) Run {
	filler := func(buyer int) []witness.Step {
		return sql(buyer, slices.Repeat([]string{"SELECT value FROM setting"}, 12)...)
	}
	r := Run{Verdict: verdict.Broken, Findings: []witness.Finding{{Query: "SELECT 1 FROM stock WHERE amount < 0"}}, Tables: tables()}
	r.Steps = slices.Concat(first, filler(1), sql(1, "SELECT amount FROM stock"), second, filler(2), sql(2, "SELECT amount FROM stock", "UPDATE stock SET amount = 0"), sql(1, "UPDATE stock SET amount = 0"))
	return r
}

// shown returns the commands in the short form, without the rows that count hidden commands.
func shown(f *witness.Folded) (all []string) {
	for _, row := range f.Rows {
		for _, s := range row.Steps {
			if !strings.HasPrefix(s.Command, "... ") {
				all = append(all, s.Command)
			}
		}
	}
	return all
}

// TestHides: a step is hidden only if it cannot matter.
func TestHides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		first, second []witness.Step // further steps; the case tests the second step of first
		change        func(*Run)
		odd, settings bool // whether the tested step is hidden, and whether the reads of settings are
	}{
		{name: "no buyer writes it", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), odd: true, settings: true},
		{name: "the rule names it", first: sql(1, "SELECT 1", "SELECT * FROM stock"), settings: true},
		{name: "only the rule names it", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), change: func(r *Run) { r.Findings[0].Query = "SELECT 1 FROM own_1 WHERE a < 0" }, settings: true},
		{name: "the other buyer may read what it writes", first: sql(1, "SELECT 1", "UPDATE own_1 SET a = 1"), second: sql(2, "SELECT * FROM free"), settings: true},
		{name: "its partition is written", first: sql(1, "SELECT 1", "SELECT * FROM day"), second: sql(2, "DELETE FROM year"), settings: true},
		{name: "the other buyer writes it", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), second: sql(2, "UPDATE own_1 SET a = 1"), settings: true},
		{name: "the other buyer locks it", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), second: sql(2, "SELECT a FROM own_1 FOR UPDATE"), settings: true},
		{name: "the other buyer locks the table", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), second: sql(2, "LOCK TABLE own_1"), settings: true},
		{name: "the other buyer reads what it writes", first: sql(1, "SELECT 1", "UPDATE own_1 SET a = 1"), second: sql(2, "SELECT * FROM own_1"), settings: true},
		{name: "only this buyer has it", first: sql(1, "SELECT 1", "UPDATE own_1 SET a = 1"), second: sql(2, "UPDATE own_2 SET a = 1"), odd: true, settings: true},
		{name: "its key checks a row of the rule", first: sql(1, "SELECT 1", "INSERT INTO order_line (a) VALUES (1)"), settings: true},
		{name: "its key checks a row that the other writes", first: sql(1, "SELECT 1", "INSERT INTO copies (a) VALUES (1)"), second: sql(2, "UPDATE setting SET value = 1")},
		{name: "it goes with a deleted row", first: sql(1, "SELECT 1", "SELECT * FROM note"), second: sql(2, "DELETE FROM stock WHERE id = 9"), settings: true},
		{name: "it changes with a key", first: sql(1, "SELECT 1", "SELECT * FROM note"), second: sql(2, "UPDATE order_line SET id = 9"), settings: true},
		{name: "a view", first: sql(1, "SELECT 1", "SELECT * FROM free"), settings: true},
		{name: "a trigger, not fired", first: sql(1, "SELECT 1", "SELECT * FROM logged"), odd: true, settings: true},
		{name: "a trigger", first: sql(1, "SELECT 1", "UPDATE logged SET a = 1")},
		{name: "a trigger of the other buyer", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), second: sql(2, "UPDATE logged SET a = 1")},
		{name: "a procedure", first: sql(1, "SELECT 1", "CALL buy(1)")},
		{name: "a block", first: sql(1, "SELECT 1", "DO $$ BEGIN PERFORM 1; END $$")},
		{name: "a function", first: sql(1, "SELECT 1", "SELECT buy(1)")},
		{name: "a cut statement", first: sql(1, "SELECT 1", "SELECT a FROM own_1 WHERE a IN (1, 2... (9000 bytes)")},
		{name: "a lock", first: sql(1, "SELECT 1", "SELECT pg_advisory_xact_lock(7)"), settings: true},
		{name: "an error", first: []witness.Step{{}, {Buyer: 1, Server: "postgres", Command: "SELECT * FROM own_1", Result: "error 57014: canceling statement"}}, settings: true},
		{name: "a wait", first: []witness.Step{{}, {Buyer: 1, Server: "postgres", Command: "SELECT * FROM own_1", Result: "waits for another"}}, settings: true},
		{name: "a remark", first: []witness.Step{{}, {Buyer: 1, Server: "postgres", Command: "SELECT * FROM own_1", Note: "a lock is left"}}, settings: true},
		{name: "an event", first: []witness.Step{{}, {Buyer: 1, Command: "(crashes)"}}, settings: true},
		{name: "another key", first: []witness.Step{{}, {Buyer: 1, Server: "redis", Command: "GET cache:1"}}, second: []witness.Step{{Buyer: 2, Server: "redis", Command: "SET lock:1 x NX"}}, odd: true, settings: true},
		{name: "a key that the other buyer writes", first: []witness.Step{{}, {Buyer: 1, Server: "redis", Command: "GET lock:1"}}, second: []witness.Step{{Buyer: 2, Server: "redis", Command: "SET lock:1 x NX"}}, settings: true},
		{name: "a script of the other buyer", first: []witness.Step{{}, {Buyer: 1, Server: "redis", Command: "GET cache:1"}}, second: []witness.Step{{Buyer: 2, Server: "redis", Command: "EVAL 0a1b2c lock:1"}}, settings: true},
		{name: "several keys", first: []witness.Step{{}, {Buyer: 1, Server: "redis", Command: "MGET cache:1 lock:1"}}, settings: true},
		{name: "a key when the keys are lost", first: []witness.Step{{Name: "forget", Command: "(forgets)"}, {Buyer: 1, Server: "redis", Command: "GET cache:1"}}, settings: true},
		{name: "the tables are not known", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), change: func(r *Run) { r.Tables = nil }},
		{name: "the rule names a view", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), change: func(r *Run) { r.Findings[0].Query = "SELECT * FROM free" }},
		{name: "the rule calls a function", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), change: func(r *Run) { r.Findings[0].Query = "SELECT check_all()" }},
		{name: "one process", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), change: func(r *Run) { r.Shared = true }},
		{name: "a leaked lock", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), change: func(r *Run) { r.Verdict = verdict.LeakedLock }},
		{name: "stalled, without a rule", first: sql(1, "SELECT 1", "SELECT * FROM own_1"), change: func(r *Run) { r.Verdict, r.Findings = verdict.Stalled, nil }, odd: true, settings: true},
	} {
		// The first statement of a connection is always shown, so the tested step must not be the first.
		r := two(slices.Concat(sql(1, "SELECT 0 FROM setting"), c.first, sql(1, "SELECT 2 FROM setting")), slices.Concat(sql(2, "SELECT 0 FROM setting"), c.second))
		if c.change != nil {
			c.change(&r)
		}
		f := Fold(r)
		all := shown(f)
		odd := !slices.Contains(all, c.first[1].Command)
		settings := !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, "SELECT value FROM setting") })
		if odd != c.odd || settings != c.settings {
			t.Errorf("%s: left out %t, settings %t; want %t, %t:\n%s", c.name, odd, settings, c.odd, c.settings, strings.Join(all, "\n"))
		}
		omitted, counted := 0, 0
		for _, n := range f.Omitted {
			omitted += n
		}
		last := 0
		for _, row := range f.Rows {
			if row.First != last+1 {
				t.Errorf("%s: step %d follows step %d", c.name, row.First, last)
			}
			last = row.Last
			for _, s := range row.Steps {
				var n int
				if _, err := fmt.Sscanf(s.Command, "... %d more commands", &n); err == nil {
					counted += n
				}
			}
		}
		if last != len(r.Steps) || omitted != counted {
			t.Errorf("%s: %d of %d steps, %d left out, counted %d", c.name, last, len(r.Steps), omitted, counted)
		}
	}
}

// TestTransactions: BEGIN and COMMIT are hidden only with all other steps of their transaction. Otherwise the first
// statement and the first read stay, since either may take the snapshot.
func TestTransactions(t *testing.T) {
	t.Parallel()
	whole := func(last ...string) []string {
		return append([]string{"BEGIN", "SELECT 1 FROM setting", "SELECT 2 FROM setting", "SELECT 3 FROM setting"}, last...)
	}
	for _, c := range []struct {
		name  string
		steps []witness.Step
		want  []string
	}{
		{"a transaction that does not matter", sql(1, whole("COMMIT")...), []string{"SELECT value FROM setting"}},
		{"one that does", sql(1, whole("SELECT amount FROM stock", "COMMIT")...), []string{"BEGIN", "SELECT 1 FROM setting", "SELECT amount FROM stock", "COMMIT", "SELECT value FROM setting"}},
		{"a first write, then a read", sql(1, "BEGIN", "UPDATE own_1 SET a = 1", "UPDATE own_1 SET a = 2", "UPDATE own_1 SET a = 3", "SELECT 2 FROM setting", "SELECT 3 FROM setting", "SELECT 4 FROM setting", "UPDATE stock SET amount = 0", "COMMIT"), []string{"BEGIN", "UPDATE own_1 SET a = 1", "SELECT 2 FROM setting", "UPDATE stock SET amount = 0", "COMMIT", "SELECT value FROM setting"}},
		{"without an end", sql(1, whole()...), []string{"BEGIN", "SELECT 1 FROM setting"}},
	} {
		r := two(nil, nil)
		r.Steps = slices.Concat(c.steps, r.Steps)
		got := shown(Fold(r))
		want := append(c.want, "SELECT amount FROM stock")
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
	// If a buyer uses two connections, each has its own transaction.
	r := two(nil, nil)
	other := sql(1, "BEGIN", "SELECT 1 FROM setting", "SELECT 2 FROM setting", "COMMIT")
	for i := range other {
		other[i].Connection = 9
	}
	r.Steps = slices.Concat(sql(1, "BEGIN", "UPDATE stock SET amount = 1"), other[:2], sql(1, "COMMIT"), other[2:], r.Steps)
	got := shown(Fold(r))
	if want := []string{"BEGIN", "UPDATE stock SET amount = 1", "COMMIT", "SELECT value FROM setting"}; !slices.Equal(got[:len(want)], want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRows: consecutive steps of one buyer form one row, until a watched value changes.
func TestRows(t *testing.T) {
	t.Parallel()
	r := two(nil, nil)
	for i := range r.Steps {
		r.Steps[i].Watched = []string{"1"}
	}
	for i := 25; i < len(r.Steps); i++ {
		r.Steps[i].Watched = []string{"0"}
	}
	var numbers []string
	f := Fold(r)
	for _, row := range f.Rows {
		numbers = append(numbers, row.Number())
	}
	if want := []string{"1-13", "14-26", "27", "28"}; !slices.Equal(numbers, want) {
		t.Errorf("rows %q, want %q", numbers, want)
	}
	r.Steps[20].Watched = []string{"7"} // a hidden step
	numbers = nil
	for _, row := range Fold(r).Rows {
		numbers = append(numbers, row.Number())
	}
	if want := []string{"1-13", "14-26", "27", "28"}; !slices.Equal(numbers, want) {
		t.Errorf("rows %q, want %q", numbers, want)
	}
	r.Steps = slices.Concat(sql(1, slices.Repeat([]string{"SELECT amount FROM stock"}, 4)...), r.Steps)
	if got := shown(Fold(r))[0]; got != "SELECT amount FROM stock (4 times)" {
		t.Errorf("%q", got)
	}
	r.Steps = r.Steps[:maxUnfolded]
	if f := Fold(r); len(f.Rows) != maxUnfolded || f.Omitted != nil {
		t.Errorf("a short witness has %d rows, without %v", len(f.Rows), f.Omitted)
	}
}

// TestPicks: from a wide answer, the short form shows the columns of the rule, then those that an UPDATE assigns.
func TestPicks(t *testing.T) {
	t.Parallel()
	row := []witness.Cell{{Column: "s_id", Value: "5"}, {Column: "s_name", Value: strings.Repeat("x", 60)}, {Column: "s_on_hand", Value: "1"}, {Column: "s_amount", Value: "0"}}
	read := witness.Step{Buyer: 1, Server: "postgres", Command: "SELECT s.id AS s_id, s.name AS s_name, s.on_hand AS s_on_hand, s.amount AS s_amount FROM stock s WHERE s.id = 5", Result: "s_id=5 s_name=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...", Rows: [][]witness.Cell{row, row}, Unseen: 3}
	write := witness.Step{Buyer: 1, Server: "postgres", Command: "UPDATE stock SET on_hand = 0, updated_at = now() WHERE id = 5", Result: "1 changed"}
	for _, c := range []struct {
		rule  string
		steps []witness.Step
		want  string
	}{
		{"SELECT 1 FROM stock WHERE amount < 0", []witness.Step{read}, "amount=0; amount=0; ... 3 more rows"},
		{"SELECT 1 FROM stock WHERE amount < 0", []witness.Step{read, write}, "on_hand=1 amount=0; on_hand=1 amount=0; ... 3 more rows"},
		{"SELECT 1 FROM stock", []witness.Step{read}, "id=5 on_hand=1 amount=0; id=5 on_hand=1 amount=0; ... 3 more rows"},
	} {
		f := Fold(Run{Steps: c.steps, Findings: []witness.Finding{{Query: c.rule}}, Tables: tables()})
		if s := f.Rows[0].Steps[0]; s.Result != c.want || s.Command != "SELECT ... FROM stock WHERE id = 5" {
			t.Errorf("%s: %s -> %s, want %s", c.rule, s.Command, s.Result, c.want)
		}
	}
}
