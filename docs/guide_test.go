//go:build unix

package docs_test

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/shoptest"
)

const choosePage = "docs/guides/choose-a-strategy.md"

// TestChooseMarks: the page recommends only safe strategies, and its second table has the mark of
// each strategy that is not safe.
func TestChooseMarks(t *testing.T) {
	mark := map[string]string{}
	recommended := map[string]bool{}
	for row := range strings.Lines(shoptest.Read(t, choosePage)) {
		cells := strings.Split(row, "|")
		if len(cells) != 5 {
			continue
		}
		safety := strings.TrimSpace(cells[2])
		for _, e := range lockstrategy.All() {
			recommended[e.Name] = recommended[e.Name] || strings.Contains(cells[2], "`"+e.Name+"`")
			if strings.Contains(cells[1], "`"+e.Name+"`") {
				mark[e.Name] = safety
			}
		}
	}
	for _, e := range lockstrategy.All() {
		safety := e.Safety(dialect.MySQL)
		if recommended[e.Name] && safety != "safe" {
			t.Errorf("the page recommends %s, which is %s", e.Name, safety)
		}
		if safety != "safe" && mark[e.Name] != safety {
			t.Errorf("the page marks %s as %q, and the catalogue as %q", e.Name, mark[e.Name], safety)
		}
	}
}
