package lockstrategytest

import (
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/require"
)

// auditor reads the stock and the records of a product from an engine (the servers of a test), and checks
// them. No other code of the suite reads them.
type auditor struct {
	engine *engine.Engine
}

func (a auditor) audited(tb testing.TB, name string) audit.Sums {
	tb.Helper()
	report, err := audit.Read(tb.Context(), a.engine.DB, name)
	require.NoError(tb, err)
	return report
}

// mustHaveRecords fails the test unless the given number of sales is recorded and the stock agrees.
func (a auditor) mustHaveRecords(tb testing.TB, name string, want int64) {
	tb.Helper()
	if got := a.audited(tb, name); got.Records != want || got.Drift != 0 {
		tb.Errorf("stock and records %+v, want %d records and no drift", got, want)
	}
}

// mustBe fails the test unless stock and records of the product "apple" equal `want`.
func (a auditor) mustBe(tb testing.TB, when string, want audit.Sums) {
	tb.Helper()
	expect.Equal(tb, a.audited(tb, "apple"), want, when, "stock and records")
}
