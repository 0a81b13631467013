package target

import (
	"fmt"
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/fold"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/session"
)

// TestHidden: hidden names an ignored command that may hide a bug, and a run with too many commands to compare.
func TestHidden(t *testing.T) {
	for _, c := range []struct {
		passed, step string
		more         int // number of other commands that have passed
		says         string
	}{
		{"GET jobs", "SET stock 1", 0, ""},
		{"SET jobs 1", "GET stock", gates.MostIgnored - 2, ""},
		{"SET stock 1", "GET stock", 0, `"SET stock 1" writes redis stock, and a step touches it`},
		{"GET stock", "SET stock 1", 0, `"GET stock" reads redis stock, and a step writes it`},
		{"GET jobs", "SET stock 1", gates.MostIgnored - 1, "1000 different commands passed in one run, and later ones were not compared with the steps"},
	} {
		g := ignoreGuard{programs: session.Programs{App: &app.App{Ignore: app.Ignore{Entries: []string{"^GET jobs"}}}}, known: map[gates.Template]fold.Touch{}, rule: map[string]bool{}}
		passed := []gates.Template{{Protocol: "redis", Text: c.passed}}
		for n := range c.more {
			passed = append(passed, gates.Template{Protocol: "redis", Text: fmt.Sprintf("GET other:%d", n)})
		}
		got := g.hidden(map[gates.Template]bool{{Protocol: "redis", Text: c.step}: true}, passed)
		if c.says == "" && len(got) > 0 || c.says != "" && (len(got) != 1 || got[0].text != c.says) {
			t.Errorf("%s beside %s, and %d more: %v, want %q", c.passed, c.step, c.more, got, c.says)
		}
	}
}
