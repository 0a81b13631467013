package rush_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/load/measure"
	"github.com/oversell/oversell/internal/load/sweep"
)

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

// TestPrint: the output has a table for each measure, and the notes.
func TestPrint(t *testing.T) {
	var b bytes.Buffer
	if err := swept().Print(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"MariaDB 10.11, one shop process, 2 processors that servers, shop and clients share; medians of 3 rounds of 2s",
		"Sales a second, sales/s", "p99 of successful buyers, ms", "Answers that were no sale, %", "256 clients", "5,200", "25",
		"for-update, 256 clients, the first answer without a sale: busy <b>", "left out: unit-rows: no row locks",
		"\n coalesced * ", "\n for-update  ", "* is not safe; see",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("does not say %q:\n%s", want, b.String())
		}
	}
	quiet := swept()
	quiet.Points[2].Refused = 0
	b.Reset()
	if err := quiet.Print(&b, false); err != nil || strings.Contains(b.String(), "no sale, %") {
		t.Errorf("%v: shows refusals where there are none:\n%s", err, b.String())
	}
}

// TestDocument: every format writes it, the page with a picture that has each point.
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
