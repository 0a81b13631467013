package ci_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestCIScan: a file with requests and without buyers gets a check for each pair that was explored. The replay
// command of the check shows the break again.
func TestCIScan(t *testing.T) {
	tier.Soak(t, "TestScan explores the same pairs of requests")
	shoptest.Needs(t, "python3", "redis-server")
	t.Parallel()
	r := ciRepository{t.TempDir()}
	for _, name := range []string{"shop.py", "schema.sql", "oversell.yaml"} {
		r.write(t, name, shoptest.Read(t, "internal/explore/scan/testdata/"+name))
	}
	code, stdout, stderr, got := r.check(t, nil)
	if code != shoptest.Broken || len(got.Checks) != 2 || stderr != "" {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	buy, visit := got.Checks[0], got.Checks[1]
	if buy.Status != result.Broken || !strings.HasSuffix(buy.Name, "oversell.yaml: POST /buy twice") || visit.Status != result.Holds || !visit.Complete {
		t.Errorf("%+v\n%+v", buy, visit)
	}
	if text, err := os.ReadFile(filepath.Join(r.folder, "oversell-ci/oversell.sarif")); err != nil || !strings.Contains(string(text), "equals no order of the buyers") {
		t.Errorf("%v: %s", err, text)
	}
	replay := shoptest.Command(t, strings.Fields(buy.Witness.Command)[1:]...)
	replay.Dir = r.folder
	replay.Env = append(os.Environ(), "PATH=/usr/bin:"+os.Getenv("PATH"))
	if code, stdout, stderr := shoptest.Exit(t, replay); code != shoptest.Broken || !strings.Contains(stdout, "still breaks") {
		t.Errorf("the replay ends with %d: %s%s", code, stdout, stderr)
	}
}
