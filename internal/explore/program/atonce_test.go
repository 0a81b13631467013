package program_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestAppAnswersAccepted: with `answers: accepted`, a search leaves out orders of one buyer's parallel reads, and
// completes. It still finds a race between one buyer's parallel commands and another buyer. It does not find a mistake
// that depends on which of one buyer's reads is answered first.
func TestAppAnswersAccepted(t *testing.T) {
	tier.Soak(t, "a long search of a program")
	t.Parallel()
	for _, c := range []struct {
		mode        string
		accepted    bool
		code        int
		least, most int // explored schedules
	}{
		{"check", false, shoptest.Broken, 6, 100},
		{"check", true, shoptest.Broken, 6, 100},
		{"first", false, shoptest.Broken, 20, 200},
		{"first", true, 0, 2, 2},
		{"reads", false, shoptest.Inconclusive, 200, 200},
		{"reads", true, 0, 2, 2},
	} {
		t.Run(c.mode, func(t *testing.T) {
			more := ""
			if c.accepted {
				more = "answers: accepted\n"
			}
			code, r, stderr := search(t, atOnceShop(t, c.mode, more), "--max-schedules", "200")
			if code != c.code || r.Void > 0 || r.Explored < c.least || r.Explored > c.most {
				t.Errorf("accepted %v: exit %d, %d of %d explored break, %d discarded, %s: %s", c.accepted, code, r.Violations, r.Explored, r.Void, r.Unforeseen, stderr)
			}
			t.Logf("accepted %v: exit %d, %d explored in %d runs, %.0f s, complete %v", c.accepted, code, r.Explored, r.Runs, r.Seconds, r.Complete)
		})
	}
	t.Run("replay", func(t *testing.T) { // no event happens in the shortest witness, so its replay knows no --events
		file := atOnceShop(t, "check", "answers: accepted\n")
		_, r, stderr := search(t, file, "--events", "timeout", "--first")
		if r.Witness == nil || strings.Contains(r.Witness.Schedule, "timeout") {
			t.Fatalf("%+v: %s", r, stderr)
		}
		if code, stdout, stderr := exploreApp(t, file, "--replay", r.Witness.Schedule); code != shoptest.Broken {
			t.Errorf("%s: exit %d: %s%s", r.Witness.Schedule, code, stdout, stderr)
		}
	})
}

func atOnceShop(t *testing.T, mode, more string) string {
	t.Helper()
	shoptest.Needs(t, "python3")
	command := "python3 " + absolute(t, "testdata/atonce/shop.py") + " " + mode
	return postgresShop(t, "testdata/atonce", fmt.Sprintf("[ %[1]s 1, %[1]s 2 ]", command), `"UPDATE settings SET value = id"`, more)
}
