package target

import (
	"fmt"
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/fold"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/session"
)

// TestIgnored: Ignored lists the tables of an ignored command, except the tables that oversell.yaml ignores.
func TestIgnored(t *testing.T) {
	for sql, want := range map[string]string{
		"UPDATE items SET n = ?":         "[items] [] [items]",
		"SELECT * FROM items FOR UPDATE": "[items] [] [items]",
		"SELECT * FROM items":            "[items] [] []",
		"UPDATE log SET n = ?":           "[] [] []",
		"SELECT GET_LOCK(?, ?)":          "[] [a named lock] []",
		"SELECT f(?)":                    "[] [] [any table of mysql]",
	} {
		x := &Runner{programs: session.Programs{App: &app.App{Ignore: app.Ignore{Tables: []string{"log"}}}}}
		x.guard = &ignoreGuard{programs: x.programs, tables: map[string]serverstate.Tables{"mysql": {"items": {}, "log": {}}}, known: map[gates.Template]fold.Touch{}}
		f := x.Ignored(Alone{ignored: []gates.Template{{Protocol: "mysql", Text: sql}}})
		if got := fmt.Sprint(f.Reads, f.Locks, f.Writes); got != want {
			t.Errorf("%s: %s; want %s", sql, got, want)
		}
	}
}
