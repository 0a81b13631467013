package explore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// TestProgramReport: the content of a report about a program.
func TestProgramReport(t *testing.T) {
	l := oversells()
	c := littleConfig(l)
	c.Reduce = true
	r := explore.NewReport(c, searchLittle(t, c, l))
	if want := fmt.Sprintf("explored %d of %[1]d schedules (commuting commands in one order)", r.Explored); r.Extent() != want || r.Explored >= 20 || r.Total == nil {
		t.Errorf("says %q, want %q", r.Extent(), want)
	}
	if said, want := explore.NewReport(c, explore.Result{Held: true, Explored: 7}).Extent(), fmt.Sprintf("at most %d failed tries in a row, --tries allows more", c.Tries); !strings.Contains(said, want) {
		t.Errorf("says %q, want %q", said, want)
	}
	if r.Strategy != "little" || r.Engine != explore.AppEngine || r.Server != "A 1, B 2" || r.Within != nil {
		t.Errorf("%+v", r)
	}
	if got, want := r.Replay(r.Witness), "shop explore --app little.yaml --replay "+r.Witness.Schedule; got != want || !strings.HasPrefix(r.Witness.Schedule, "v1:little:b2:s1:") {
		t.Errorf("%q, want %q", got, want)
	}
	text, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(text), `"reduced":true`) || strings.Contains(string(text), `"void"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestMissing: a search that may have left out schedules is complete for no number of preemptions.
func TestMissing(t *testing.T) {
	late := func(_ *world, p *schedule.Point) error {
		p.Late = true
		return nil
	}
	for name, l := range map[string]*little{"none": oversells(), "late": oversells(), "ignored": oversells()} {
		switch name {
		case "late":
			l.trouble = late
		case "ignored":
			l.ignored = []string{"a statement writes orders"}
		}
		r := explore.NewReport(littleConfig(l), searchLittle(t, littleConfig(l), l))
		if whole := name == "none"; r.Complete != whole || (r.Total != nil) != whole || (r.Within != nil) != whole {
			t.Errorf("%s: complete %v, total %v, within %v: %s", name, r.Complete, r.Total, r.Within, r.Extent())
		}
	}
}
