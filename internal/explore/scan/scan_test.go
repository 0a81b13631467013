package scan_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/scan"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

func scanFile(t *testing.T, changes ...string) string {
	t.Helper()
	shoptest.Needs(t, "python3", "redis-server")
	folder := filepath.Join(shoptest.Root(t), "internal/explore/scan/testdata")
	text := shoptest.Read(t, "internal/explore/scan/testdata/oversell.yaml")
	file := filepath.Join(t.TempDir(), "oversell.yaml")
	shoptest.Write(t, file, "folder: "+folder+"\n"+strings.NewReplacer(changes...).Replace(text))
	return file
}

// TestScan: three requests need a login. The purchase races with itself. The counter in Redis does not,
// and the scan leaves out pairs that only read. A replay of the saved pair breaks again.
func TestScan(t *testing.T) {
	t.Parallel()
	file := scanFile(t)
	races := filepath.Join(filepath.Dir(file), "races")
	code, stdout, stderr := shoptest.Run(t, "scan", "--app", file, "--json", "--save", races)
	var r scan.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != shoptest.Broken || len(r.Pairs) != 6 {
		t.Fatalf("exit %d, %v, %d pairs: %s%s", code, err, len(r.Pairs), stdout, stderr)
	}
	buy, visit := r.Pairs[0], r.Pairs[1]
	if buy.Requests != [2]string{"POST /buy", "POST /buy"} || strings.Join(buy.Conflicts, " ") != "items orders" || buy.Verdict != verdict.Broken || !buy.Complete || buy.Search.Witness == nil {
		t.Errorf("%+v", buy)
	}
	if visit.Requests[1] != "POST /visit" || strings.Join(visit.Conflicts, " ") != "redis key visits" || visit.Verdict != verdict.Holds || !visit.Complete || visit.Schedules < 2 {
		t.Errorf("%+v", visit)
	}
	for _, p := range r.Pairs[2:] {
		if !p.LeftOut || p.Why != "both only read what they share" {
			t.Errorf("%+v", p)
		}
	}
	pair := filepath.Join(races, "post-buy_post-buy")
	if want := "shop explore --app " + pair + "/oversell.yaml --replay " + pair + "/replay"; buy.Replay != want {
		t.Errorf("%s, want %s", buy.Replay, want)
	}
	code, stdout, stderr = shoptest.Run(t, "explore", "--app", pair+"/oversell.yaml", "--replay", pair+"/replay")
	if code != shoptest.Broken || !strings.Contains(stdout, "still breaks: broken: equals no order of the buyers") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// TestScanInput: for each mistake, one line says what to do.
func TestScanInput(t *testing.T) {
	tier.Soak(t, "TestUnproven and TestFormats cover the same mistakes in the input of a scan")
	t.Parallel()
	for _, c := range []struct {
		name    string
		changes []string
		code    int
		says    string
	}{
		{"no login", []string{"{{login.token}}", "none"}, shoptest.Harness, "no request can be explored; GET /profile: it needs a login, since it is answered 401"},
		{"no value", []string{"/data/token", "/token"}, shoptest.Harness, "before fails for buyer 1: POST http://127.0.0.1:8080/login is answered 200"},
		{"login fails", []string{"8080/login", "8080/nowhere"}, shoptest.Harness, "before fails for buyer 1: POST http://127.0.0.1:8080/nowhere: it is answered 401"},
		{"another answer each time", []string{"POST http://127.0.0.1:8080/buy", "POST http://127.0.0.1:8080/lottery"}, shoptest.Inconclusive, "POST /lottery twice: the same buyers, one after the other, are answered with another status each time"},
		{"only reads", []string{"  - POST http://127.0.0.1:8080/visit\n  - POST http://127.0.0.1:8080/buy\n", ""}, shoptest.Inconclusive, "no request writes what another one uses"},
		{"budget", []string{}, shoptest.Inconclusive, "had no turn before --budget was spent: raise --budget, or list fewer requests"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"scan", "--app", scanFile(t, c.changes...)}
			if c.name == "budget" {
				args = append(args, "--budget", "10ms")
			}
			code, stdout, stderr := shoptest.Run(t, args...)
			if code != c.code || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit %d, want %d and %q: %s%s", code, c.code, c.says, stdout, stderr)
			}
		})
	}
}
