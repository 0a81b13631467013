package rush_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/measure"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/load/sweep"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// TestRead: the report shows stock and records as they are, right or wrong.
func TestRead(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		db := open(t).DB
		exec := func(statement string) {
			t.Helper()
			require.NoError(t, db.Exec(statement).Error)
		}
		const insert = "INSERT INTO purchase_history (product_name, purchaser, purchase_time, amount, strategy, left_after, waited_ms, idempotency_key) VALUES "
		for _, c := range []struct {
			name, statement string
			want            audit.Sums
		}{
			{"fresh", "DELETE FROM purchase_history", audit.Sums{Stocked: 100, Leftover: 100}},
			{"another product's record", insert + "('pear', 'a', '2026-01-01', 5, 'x', 0, 0, NULL)", audit.Sums{Stocked: 100, Leftover: 100}},
			{"stock gone, no record", "UPDATE product SET amount = 97", audit.Sums{Stocked: 100, Leftover: 97, Drift: -3}},
			{
				"records again", insert + "('apple', 'a', '2026-01-01', 2, 'x', 0, 0, NULL), ('apple', 'b', '2026-01-01', 1, 'x', 0, 0, 'k')",
				audit.Sums{Stocked: 100, Leftover: 97, Records: 2, UnitsSold: 3},
			},
			{
				"units in parts", "INSERT INTO product_part (product_name, part, amount) VALUES ('apple', 0, 4), ('apple', 3, 2), ('pear', 0, 9)",
				audit.Sums{Stocked: 100, Leftover: 103, Records: 2, UnitsSold: 3, Drift: 6},
			},
			{"and not", "DELETE FROM product_part", audit.Sums{Stocked: 100, Leftover: 97, Records: 2, UnitsSold: 3}},
			{
				"too many", insert + "('apple', 'c', '2026-01-01', 100, 'x', 0, 0, NULL)",
				audit.Sums{Stocked: 100, Leftover: 97, Records: 3, UnitsSold: 103, Oversold: 3, Drift: 100},
			},
		} {
			exec(c.statement)
			got, err := audit.Read(t.Context(), db, "apple")
			if err != nil || got != c.want {
				t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
			}
		}
		expect.ErrorIs(t, expect.ErrorOf(audit.Read(t.Context(), db, "moon")), product.ErrNotFound, "no such product")
	})
}

// TestReadDuplicates drops the index, since the schema refuses a second record of a key.
func TestReadDuplicates(t *testing.T) {
	db := enginetest.Local(t).DB
	for _, statement := range []string{
		"DROP INDEX purchase_history_key ON purchase_history",
		`INSERT INTO purchase_history (product_name, purchaser, purchase_time, amount, strategy, left_after, waited_ms, idempotency_key)
			VALUES ('apple', 'a', '2026-01-01', 1, 'x', 0, 0, 'k'), ('apple', 'a', '2026-01-01', 1, 'x', 0, 0, 'k'),
			('apple', 'a', '2026-01-01', 1, 'x', 0, 0, NULL), ('apple', 'a', '2026-01-01', 1, 'x', 0, 0, NULL)`,
	} {
		require.NoError(t, db.Exec(statement).Error)
	}
	if got, err := audit.Read(t.Context(), db, "apple"); err != nil || got.Duplicates != 1 || got.Records != 4 {
		t.Errorf("%+v, %v; want 4 records, 1 duplicate", got, err)
	}
}

// TestNodesDisagree: two databases stand for the nodes of a cluster. Equal stock and records pass. A
// different stock, or different records, are a break.
func TestNodesDisagree(t *testing.T) {
	one, two := enginetest.Embedded(t).Admin, enginetest.Embedded(t).Admin
	auditor := rush.Database{DB: one, Nodes: func() ([]*gorm.DB, error) { return []*gorm.DB{one, two}, nil }, AgreeWithin: time.Millisecond}
	for _, c := range []struct {
		name, breaks string
		want         verdict.Verdict
	}{
		{"the same", "", verdict.Holds},
		{"another stock", "UPDATE product SET amount = amount + 1 WHERE name = 'pear'", verdict.Diverged},
		{"other records", "UPDATE purchase_history SET id = id + 100 WHERE product_name = 'pear'", verdict.Diverged},
	} {
		for _, db := range []*gorm.DB{one, two} {
			require.NoError(t, product.Put(db, "pear", 1))
			require.NoError(t, purchase.Clear(db, "pear"))
			receipt := purchase.Receipt{Product: "pear", Purchaser: "ann", Amount: 1}
			require.NoError(t, purchase.Insert(t.Context(), db, "", time.Now(), &receipt))
			require.NoError(t, expect.ErrorOf(product.TakeIfLeft(db, "pear", 1)))
		}
		if c.breaks != "" {
			require.NoError(t, two.Exec(c.breaks).Error)
		}
		report, err := auditor.Audit(t.Context(), "pear")
		require.NoError(t, err)
		got, why := audit.Judge(audit.Evidence{Sums: report, Demand: 2, MaxOverlap: 2, SoldOut: 1})
		expect.Equal(t, got, c.want, c.name, why)
	}
}

func swept() sweep.Result {
	return sweep.Result{
		Server: "MariaDB 10.11", Cores: 2, Processes: 1, Round: 2 * time.Second, Clients: []int{1, 64, 256},
		Points: []sweep.Point{
			sweep.Of("for-update", 1, []measure.Round{{PerSecond: 400, P50: 2 * time.Millisecond, P99: 4 * time.Millisecond}, {PerSecond: 300, P50: 3 * time.Millisecond, P99: 9 * time.Millisecond}, {PerSecond: 1000, P50: 1 * time.Millisecond, P99: 5 * time.Millisecond}}),
			sweep.Of("for-update", 64, []measure.Round{{PerSecond: 900, P99: 80 * time.Millisecond}}),
			sweep.Of("for-update", 256, []measure.Round{{PerSecond: 700, P99: 400 * time.Millisecond, Refused: 0.25, FirstNo: "busy <b>"}}),
			sweep.Of("coalesced", 1, []measure.Round{{PerSecond: 350, P99: 4 * time.Millisecond}}),
			sweep.Of("coalesced", 64, []measure.Round{{PerSecond: 5200, P99: 20 * time.Millisecond}}),
			sweep.Of("coalesced", 256, []measure.Round{{}}), // no buyer was served
		},
		LeftOut: []string{"unit-rows: no row locks"}, Unsafe: []string{"coalesced", "none"},
	}
}

// TestOf: a point is the median of its rounds, figure by figure.
func TestOf(t *testing.T) {
	p := swept().Points[0]
	if p.PerSecond != 400 || p.P50MS != 2 || p.P99MS != 5 || len(p.Rounds) != 3 {
		t.Errorf("%+v", p)
	}
}

// TestPrint: Print writes a table for each figure, and the notes.
func TestPrint(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, swept().Print(&b, false))
	for _, want := range []string{
		"MariaDB 10.11, one shop process, 2 processors that servers, shop and clients share; medians of 3 rounds of 2s",
		"Sales a second, sales/s", "p99 of successful buyers, ms", "Answers that were no sale, %", "256 clients", "5,200", "25",
		"for-update, 256 clients, the first answer without a sale: busy <b>", "left out: unit-rows: no row locks",
		"\n coalesced * ", "\n for-update  ", "* is not safe; see",
	} {
		expect.Contains(t, b.String(), want)
	}
	quiet := swept()
	quiet.Points[2].Refused = 0
	b.Reset()
	if err := quiet.Print(&b, false); err != nil || strings.Contains(b.String(), "no sale, %") {
		t.Errorf("%v: shows refusals where there are none:\n%s", err, b.String())
	}
}

// TestDocument: every format can be written. The page contains a picture with each point.
func TestDocument(t *testing.T) {
	for _, f := range report.Formats() {
		var b bytes.Buffer
		if err := f.Write(&b, swept().Document()); err != nil || b.Len() == 0 {
			t.Errorf("%s: %v, %d bytes", f.Ending, err, b.Len())
		}
		if f.Ending != ".html" {
			continue
		}
		page := b.String()
		if got := strings.Count(page, "<circle"); got != 18 { // six points, three measures
			t.Errorf("%d points are drawn", got)
		}
		for _, bad := range []string{"NaN", "Inf", "<b>", "ZgotmplZ"} {
			if strings.Contains(page, bad) {
				t.Errorf("the page has %s", bad)
			}
		}
	}
	empty := sweep.Result{Clients: []int{1}}
	if d := empty.Document(); len(d.Cases) != 2 || d.Cases[0].Seen != "nothing was measured" {
		t.Errorf("%+v", d.Cases)
	}
}

// TestNoHistory: a service that answers an unknown route with 200 and an object shows no history, and its
// receipts are compared with the sums. An empty list is a history.
func TestNoHistory(t *testing.T) {
	for answer, lost := range map[string]int64{"{}": 0, `{"records":[],"next":null}`: 1, `{"records":null}`: 1} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		sold := []audit.Answer{{Purchaser: "ann", Units: 1, Outcome: purchase.Sold, ID: 7}}
		compared, err := rush.Compare(t.Context(), rush.Target{BaseURL: service.URL}, "pear", sold, audit.Sums{Stocked: 1, Records: 1, UnitsSold: 1})
		service.Close()
		if err != nil || compared.Lost != lost || (compared.Sales == nil) != (lost == 0) {
			t.Errorf("%s: %v: %+v, want %d lost", answer, err, compared, lost)
		}
	}
}
