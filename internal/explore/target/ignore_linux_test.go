package target

import (
	"fmt"
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/fold"
)

// TestHidden: an ignored command that may hide something is named, and so is a run with too many to compare.
func TestHidden(t *testing.T) {
	for _, c := range []struct {
		passed, step string
		more         int // other commands that have passed
		says         string
	}{
		{"GET jobs", "SET stock 1", 0, ""},
		{"SET jobs 1", "GET stock", mostIgnored - 2, ""},
		{"SET stock 1", "GET stock", 0, `"SET stock 1" writes redis stock, and a step touches it`},
		{"GET stock", "SET stock 1", 0, `"GET stock" reads redis stock, and a step writes it`},
		{"GET jobs", "SET stock 1", mostIgnored - 1, "1000 different commands passed in one run, and later ones were not compared with the steps"},
	} {
		rules := app.Ignore{Entries: []string{"^GET jobs"}}
		f, err := newFloor(rules, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.bypass.passed[template{"redis", c.passed}] = true
		for n := range c.more {
			f.bypass.passed[template{"redis", fmt.Sprintf("GET other:%d", n)}] = true
		}
		g := ignoreGuard{x: &Runner{app: &app.App{Ignore: rules}, gateTable: f}, known: map[template]fold.Touch{}, rule: map[string]bool{}}
		got := g.hidden(map[template]bool{{"redis", c.step}: true})
		if c.says == "" && len(got) > 0 || c.says != "" && (len(got) != 1 || got[0].text != c.says) {
			t.Errorf("%s beside %s, and %d more: %v, want %q", c.passed, c.step, c.more, got, c.says)
		}
		if err := f.bell.close(); err != nil {
			t.Error(err)
		}
	}
}
