package program_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// varyingShop writes a file for testdata/varying/shop.py.
func varyingShop(t *testing.T, mode, more string) string {
	t.Helper()
	shoptest.Needs(t, "python3")
	return postgresShop(t, "testdata/varying", "python3 "+absolute(t, "testdata/varying/shop.py")+" "+mode, `"DELETE FROM carts"`, more)
}

// TestAppVarying: values that differ in each run make no run diverge. The explorer learns where they
// are, or the file says how they look.
func TestAppVarying(t *testing.T) {
	tier.Soak(t, "no other test has it: searches of programs whose values differ")
	t.Parallel()
	code, r, stderr := search(t, varyingShop(t, "values", ""))
	if code != shoptest.Broken || r.Void > 0 || !r.Complete || r.Explored < 10 {
		t.Errorf("exit %d, %d explored, complete %v, %v: %s", code, r.Explored, r.Complete, r.Voided, stderr)
	}
	if w := r.Witness; w != nil {
		for _, s := range w.Steps {
			if s.Command == "" || strings.Contains(s.Command, "INSERT INTO carts") && !strings.Contains(s.Command, "VALUES ('<carts.") {
				t.Errorf("%+v", s)
			}
		}
	}
	// The explorer compares requests 3 and 5, since request 4 has a command of its own.
	code, r, stderr = search(t, varyingShop(t, "refresh", ""), "--max-schedules", "5")
	if code != shoptest.Broken || r.Void > 0 {
		t.Errorf("refresh: exit %d, %v: %s", code, r.Voided, stderr)
	}
	code, _, stderr = exploreApp(t, varyingShop(t, "list", ""))
	const says = "buyer 1 alone: a value that differs each time cannot be found in its command \"SELECT ARRAY["
	if code != shoptest.Harness || !strings.Contains(stderr, says) || !strings.Contains(stderr, "write a pattern for it in `random:` of the file") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d: %s; want %q", code, stderr, says)
	}
	code, r, stderr = search(t, varyingShop(t, "list", "random: [ 'ARRAY\\[.*\\]' ]\n"), "--max-schedules", "5")
	if code != shoptest.Broken || r.Void > 0 {
		t.Errorf("exit %d, %v: %s", code, r.Voided, stderr)
	}
}

// TestAppRefusals: the reason of a discarded run names the answer of a rate limiter.
func TestAppRefusals(t *testing.T) {
	tier.Soak(t, "no other test has it: the reason of a run that a rate limiter ends")
	t.Parallel()
	_, r, stderr := search(t, varyingShop(t, "limits", ""), "--max-schedules", "12")
	named := func(v explore.Voided) bool { return strings.Contains(v.Details, "buyer 1 was answered 429") }
	if r.Void == 0 || !slices.ContainsFunc(r.Voided, named) {
		t.Errorf("%d void: %+v: %s", r.Void, r.Voided, stderr)
	}
}
