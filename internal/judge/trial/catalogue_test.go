package trial

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
)

// TestCatalogueTable: each row of the table shows all words of its own strategy in order, however
// the cells are wrapped.
func TestCatalogueTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, PrintCatalogue(&out, false))
	type shown struct{ family, name, safe, does, breaks string }
	var rows []shown
	for _, line := range strings.Split(out.String(), "\n") {
		fields := strings.Split(line, "│")
		if len(fields) != 8 || strings.TrimSpace(fields[2]) == "name" {
			continue
		}
		if strings.TrimSpace(fields[2]) != "" {
			rows = append(rows, shown{})
		}
		if len(rows) == 0 {
			t.Fatalf("a row begins without a name: %s", line)
		}
		r := &rows[len(rows)-1]
		for i, field := range []*string{&r.family, &r.name, &r.safe, &r.does, &r.breaks} {
			*field = strings.TrimSpace(*field + " " + strings.TrimSpace(fields[i+1]))
		}
	}
	all := lockstrategy.All()
	if len(rows) != len(all) {
		t.Fatalf("%d rows of %d strategies:\n%s", len(rows), len(all), out.String())
	}
	above := ""
	for i, e := range all {
		want := shown{e.Family, e.Name, e.Safety(dialect.MySQL), e.Summary, e.BreaksWhen}
		if e.Family == above {
			want.family = ""
		}
		above = e.Family
		expect.Equal(t, rows[i], want, "row", i)
	}
}
