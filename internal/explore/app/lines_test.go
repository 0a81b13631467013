package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/oversell/oversell/internal/require"
)

// TestLine: Line finds each rule and the buyers in every notation of YAML.
func TestLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		rules      map[string]int // line numbers by query; "" stands for the buyers
	}{
		{"a list", `run: ./shop
mysql: 127.0.0.1:3306
buyer: POST http://127.0.0.1:8080/buy
reset: { sql: [ "DELETE FROM orders" ] }
never:
  # a comment

  - SELECT 1
  - "SELECT 2"   # one more
  - >
    SELECT
    3
`, map[string]int{"": 3, "SELECT 1": 8, "SELECT 2": 9, "SELECT 3\n": 10, "unknown": 3}},
		{"in one line", `never: [ SELECT 1, SELECT 2 ]
run: ./shop
mysql: 127.0.0.1:3306
buyers:
  - POST http://127.0.0.1:8080/buy?a
  - POST http://127.0.0.1:8080/buy?b
reset: { sql: [ "DELETE FROM orders" ] }
`, map[string]int{"": 5, "SELECT 1": 1, "SELECT 2": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "oversell.yaml")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			a, err := Load(path)
			require.NoError(t, err)
			for rule, want := range c.rules {
				if got := a.Line(rule); got != want {
					t.Errorf("%q is at line %d, want %d", rule, got, want)
				}
			}
		})
	}
}
