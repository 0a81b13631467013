package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/teach/live"
	"github.com/oversell/oversell/internal/teach/live/runs"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// asJSON is the header that the leader's routes require.
var asJSON = http.Header{"Content-Type": {"application/json"}}

// serveStage runs `shop serve` with this test program as its child processes.
func serveStage(t *testing.T, args ...string) (base string) {
	t.Helper()
	return startServe(t, args...)
}

// sendCrowd starts a run of the page and returns it when it has ended.
func sendCrowd(t *testing.T, base, request string) runs.Run {
	t.Helper()
	r := webtest.Call(t, http.MethodPost, base+"/live/runs", request, asJSON)
	if r.Status != http.StatusAccepted {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	return ended(t, base, webtest.Decode[runs.Summary](t, r).ID)
}

func ended(t *testing.T, base, id string) (run runs.Run) {
	t.Helper()
	webtest.Eventually(t, "the run ends", func() bool {
		run = webtest.Decode[runs.Run](t, webtest.Call(t, http.MethodGet, base+"/live/runs/"+id, "", nil))
		return run.State != runs.Running
	})
	return run
}

// withPromise returns the strategies that run on the embedded engine and have this promise under
// the condition.
func withPromise(c promise.Condition, v verdict.Verdict) (names []string) {
	for _, e := range lockstrategy.All() {
		if len(e.Needs) == 0 && e.Promised(c, "sqlite") == v {
			names = append(names, e.Name)
		}
	}
	return names
}

// TestStage: the live page sends the same rush as the command, with the same verdicts, and draws a picture
// that agrees with them. The printed command contains the shop's flags that affect a crowd. The shop itself
// continues to serve.
func TestStage(t *testing.T) {
	tier.Test(t, "it serves a shop to a room")
	t.Parallel()
	base := serveStage(t, "--wait", "45s", "--poll", "5ms", "--db-conns", "16") // the race detector makes buyers slow, and this test is about verdicts
	names := slices.Concat(withPromise(promise.TwoProcesses, verdict.Oversold)[:1], withPromise(promise.TwoProcesses, verdict.Holds)[:3])
	run := sendCrowd(t, base, fmt.Sprintf(`{"strategies":["%s"],"processes":2,"stock":40,"buyers":120,"product":"a pear"}`, strings.Join(names, `","`)))
	if run.State != runs.Done || len(run.Report.Results) != len(names) || len(run.Lanes) != len(names) || len(run.Events) == 0 {
		t.Fatalf("%s %s: %d results, %d lanes, %d events", run.State, run.Error, len(run.Report.Results), len(run.Lanes), len(run.Events))
	}
	if want := "shop rush --strategy " + strings.Join(names, ",") + " --stock 40 --buyers 120 --processes 2 --expect --product 'a pear' --wait 45s --poll 5ms"; run.Command != want {
		t.Errorf("command %q, want %q", run.Command, want)
	}
	for i, r := range run.Report.Results {
		lane := run.Lanes[i]
		if r.Strategy != names[i] || r.Promise == "" || !r.Promise.Keeps(r.Verdict) {
			t.Errorf("%s is %s: %s; promised %s", r.Strategy, r.Verdict, r.Reason, r.Promise)
		}
		if lane.Strategy != r.Strategy || lane.Units != r.UnitsSold || lane.Records != r.Records || lane.Inside != 0 {
			t.Errorf("the lane of %s has %d units in %d records, the audit %d in %d", lane.Strategy, lane.Units, lane.Records, r.UnitsSold, r.Records)
		}
		if sound := r.Verdict == verdict.Holds; sound != (lane.Twice == 0) || sound && (lane.Cells != strings.Repeat("1", 40) || lane.MostHolders > 1) {
			t.Errorf("%s is %s, and its shelf is %q with %d sold twice and %d holders at once", r.Strategy, r.Verdict, lane.Cells, lane.Twice, lane.MostHolders)
		}
	}
	opened := firstState(t, base)
	if !opened.Whole || len(opened.Lanes) != len(names) {
		t.Errorf("a page that is opened afterwards has %d lanes", len(opened.Lanes))
	}
	page := webtest.Call(t, http.MethodGet, base+"/live/runs/"+run.ID+".html", "", nil)
	if page.Status != http.StatusOK || strings.Count(string(page.Body), "<svg") != len(names) {
		t.Errorf("%d, %d pictures", page.Status, strings.Count(string(page.Body), "<svg"))
	}
	if r := webtest.Call(t, http.MethodGet, base+"/product/buy", "", nil); r.Status != http.StatusOK {
		t.Errorf("the shop answers %d %s", r.Status, r.Body)
	}
}

// firstState reads the first message of the live page's stream.
func firstState(t *testing.T, base string) (s struct {
	Whole bool        `json:"whole"`
	Lanes []live.Lane `json:"lanes"`
},
) {
	t.Helper()
	stream, err := http.Get(base + "/live/events?events=no")
	require.NoError(t, err)
	defer stream.Body.Close()
	lines := bufio.NewReader(stream.Body)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return webtest.Decode[struct {
				Whole bool        `json:"whole"`
				Lanes []live.Lane `json:"lanes"`
			}](t, response{Body: []byte(data)})
		}
	}
}

// leasedUnder returns a strategy that relies on a lease alone between two processes, is affected by
// the fault, and has this promise under the fault. It returns "" if there is none.
func leasedUnder(c promise.Condition, database string, v verdict.Verdict) string {
	for _, e := range lockstrategy.All() {
		if e.Leased && e.Promised(promise.TwoProcesses, database) == verdict.Holds && lockstrategy.Affects(c, e.Needs) && e.Promised(c, database) == v {
			return e.Name
		}
	}
	return ""
}

// TestStageSpared: a strategy that a fault does not affect is skipped with the reason, and not
// shown as holding.
func TestStageSpared(t *testing.T) {
	tier.Test(t, "it serves a shop to a room")
	t.Parallel()
	base := serveStage(t)
	struck := leasedUnder(promise.RedisRestart, "sqlite", verdict.Oversold)
	spared := ""
	for _, e := range lockstrategy.All() {
		if len(e.Needs) == 0 && e.Promised(promise.TwoProcesses, "sqlite") == verdict.Holds {
			spared = e.Name
		}
	}
	run := sendCrowd(t, base, fmt.Sprintf(`{"strategies":[%q,%q],"processes":2,"fault":"redis-restart"}`, spared, struck))
	if len(run.Report.Results) != 1 || run.Report.Results[0].Strategy != struck || len(run.Lanes) != 1 {
		t.Errorf("%d results, %d lanes", len(run.Report.Results), len(run.Lanes))
	}
	if why := spared + ": redis-restart affects only strategies that use redis"; len(run.Spared) != 1 || !strings.HasPrefix(run.Spared[0], why) || !slices.Equal(run.Spared, run.Report.LeftOut) {
		t.Errorf("left out: %q, and of the report %q", run.Spared, run.Report.LeftOut)
	}
	if page := webtest.Call(t, http.MethodGet, base+"/live/runs/"+run.ID+".html", "", nil); !strings.Contains(string(page.Body), "Left out: "+spared) {
		t.Error("the page does not say what was left out")
	}
	run = sendAndStrike(t, base, spared, promise.RedisRestart)
	if len(run.Strikes) != 1 || !strings.Contains(run.Strikes[0].Missed, "redis-restart affects only strategies that use redis") || strings.Contains(run.Command, "--strike") {
		t.Errorf("%+v; %s", run.Strikes, run.Command)
	}
}

// TestStageBadInput: the error is one line, and no run begins.
func TestStageBadInput(t *testing.T) {
	t.Parallel()
	base := serveStage(t)
	missing, spared := "", ""
	for _, e := range lockstrategy.All() {
		if slices.Contains(e.Needs, lockstrategy.NeedsEtcd) {
			missing = e.Name
		}
		if len(e.Needs) == 0 {
			spared = e.Name
		}
	}
	for request, want := range map[string]string{
		`{}`:                                                        "strategies needs names, or all",
		`{"strategies":["nosuch"]}`:                                 `unknown strategy \"nosuch\"; list them with: shop strategies`,
		`{"strategies":["` + missing + `"]}`:                        "strategy " + missing + ": ",
		`{"strategies":["all"],"stock":0}`:                          "stock must be between 1 and ",
		`{"strategies":["all"],"stock":-5}`:                         "stock must be between 1 and 1000000000 (got -5)",
		`{"strategies":["all"],"buyers":10001}`:                     "buyers must be between 1 and 10000 (got 10001)",
		`{"strategies":["all"],"processes":65}`:                     "processes must be between 1 and 64 (got 65)",
		`{"strategies":["all"],"product":"buy"}`:                    "a product cannot have the name",
		`{"strategies":["all"],"product":" x"}`:                     "product ",
		`{"strategies":["all"],"fault":"db-kill"}`:                  "cannot inject db-kill on this engine: the database is not one server that the engine has started; choose from: crash, pause, ",
		`{"strategies":["all"],"fault":"nosuch"}`:                   `unknown fault \"nosuch\"; list them with: shop help faults`,
		`{"strategies":["all"],"fault":"partition"}`:                "cannot inject partition into a running rush; use: shop verify --fault partition",
		`{"strategies":["all"],"fault":"pause"}`:                    "it needs 2 processes or more",
		`{"strategies":["` + spared + `"],"fault":"redis-restart"}`: "the fault affects none of the strategies: " + spared,
		`{"strategies":["all"],"stock":"many"}`:                     "the body is not the JSON that this route takes",
		`{"strategies":["all","all"],"processes":1}`:                "needs names, or all alone",
	} {
		r := webtest.Call(t, http.MethodPost, base+"/live/runs", request, asJSON)
		if r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), want) {
			t.Errorf("%s: %d %s; want 400 and %q", request, r.Status, r.Body, want)
		}
	}
	r := webtest.Call(t, http.MethodPost, base+"/live/strikes", `{"fault":"partition"}`, asJSON)
	if want := "use: shop verify --fault partition"; r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), want) {
		t.Errorf("by hand: %d %s; want 400 and %q", r.Status, r.Body, want)
	}
	if list := webtest.Decode[struct {
		Runs []runs.Summary `json:"runs"`
	}](t, webtest.Call(t, http.MethodGet, base+"/live/runs", "", nil)).Runs; len(list) != 0 {
		t.Errorf("%d runs began", len(list))
	}
}

// TestStageToken: on an address other than loopback the leader's controls need the token. Public
// content does not.
func TestStageToken(t *testing.T) {
	t.Setenv("SHOP_ADMIN_TOKEN", "secret")
	base := serveStage(t, "--addr", "0.0.0.0:0")
	base = "http://127.0.0.1" + base[strings.LastIndex(base, ":"):]
	one := fmt.Sprintf(`{"strategies":[%q],"stock":2,"buyers":4}`, withPromise(promise.Rush, verdict.Holds)[0])
	for path, body := range map[string]string{"/live/runs": one, "/live/strikes": `{"fault":"crash"}`, "/live/stop": ""} {
		for _, sent := range []string{"", "Bearer wrong"} {
			header := asJSON.Clone()
			header.Set("Authorization", sent)
			if r := webtest.Call(t, http.MethodPost, base+path, body, header); r.Status != http.StatusUnauthorized {
				t.Errorf("%s with %q: %d %s", path, sent, r.Status, r.Body)
			}
		}
	}
	for _, path := range []string{"/", "/live/runs"} {
		if r := webtest.Call(t, http.MethodGet, base+path, "", nil); r.Status != http.StatusOK {
			t.Errorf("%s: %d", path, r.Status)
		}
	}
	header := asJSON.Clone()
	header.Set("Authorization", "Bearer secret")
	r := webtest.Call(t, http.MethodPost, base+"/live/runs", one, header)
	if r.Status != http.StatusAccepted {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	if run := ended(t, base, webtest.Decode[runs.Summary](t, r).ID); run.State != runs.Done {
		t.Errorf("%s %s", run.State, run.Error)
	}
}

// TestStageEnds: a rush under way ends with the shop, which exits with 0 and leaves nothing behind;
// startServe checks that.
func TestStageEnds(t *testing.T) {
	tier.Test(t, "plays a rush to its end")
	t.Parallel()
	base := serveStage(t)
	r := webtest.Call(t, http.MethodPost, base+"/live/runs", `{"strategies":["all"],"processes":2}`, asJSON)
	if r.Status != http.StatusAccepted {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	id := webtest.Decode[runs.Summary](t, r).ID
	webtest.Eventually(t, "a crowd buys", func() bool {
		run := webtest.Decode[runs.Run](t, webtest.Call(t, http.MethodGet, base+"/live/runs/"+id, "", nil))
		return len(run.Report.Results) > 0
	})
}

// restsOnLease returns a strategy with a lease in Redis that only a pause breaks.
func restsOnLease(t *testing.T) string {
	t.Helper()
	for _, e := range lockstrategy.All() {
		if len(e.Needs) == 1 && e.Needs[0] == lockstrategy.NeedsRedis && e.Leased && e.Promised(promise.TwoProcesses, "sqlite") == verdict.Holds &&
			e.Promised(promise.Pause, "sqlite") == verdict.Oversold && e.Promised(promise.Crash, "sqlite") == verdict.Holds {
			return e.Name
		}
	}
	t.Fatal("no strategy rests on its lease")
	return ""
}

// TestStruckByHand: no promise applies to a fault at a moment of the leader's choice, and the fault
// does not make the run inconclusive. The command on the page injects the fault too.
func TestStruckByHand(t *testing.T) {
	tier.Test(t, "a burst of which a holder dies")
	t.Parallel()
	// The lease of the dead holder expires well within this wait, even on a slow machine. Otherwise
	// all buyers might give up after a few sales, and slow could not be distinguished from stuck.
	base, name := serveStage(t, "--wait", "1m"), restsOnLease(t)
	run := sendAndStrike(t, base, name, promise.Crash)
	for tries := 1; tries < 5 && run.State == runs.Done && len(run.Strikes) > 0 && run.Strikes[0].Missed != ""; tries++ { // again if the crowd ended before the fault
		run = sendAndStrike(t, base, name, promise.Crash)
	}
	if run.State != runs.Done || len(run.Strikes) != 1 || run.Strikes[0].Proof == "" || !run.Strikes[0].ByHand {
		t.Fatalf("%s %s: %+v", run.State, run.Error, run.Strikes)
	}
	row, result := run.Rows[0], run.Report.Results[0]
	if row.Promise != "" || result.Verdict == verdict.Inconclusive || !row.Kept || strings.Count(result.Reason, "a fault was injected by hand") != 1 {
		t.Errorf("%+v: %s", row, result.Reason)
	}
	want := fmt.Sprintf("shop rush --strategy %s --stock 400 --buyers 800 --processes 2 --expect --strike crash # crash was injected into %[1]s by hand", name)
	if run.Command != want {
		t.Errorf("command %q, want %q", run.Command, want)
	}
}

// sendAndStrike sends a crowd and injects a fault by hand.
func sendAndStrike(t *testing.T, base, strategy string, f promise.Condition) runs.Run {
	t.Helper()
	r := webtest.Call(t, http.MethodPost, base+"/live/runs", fmt.Sprintf(`{"strategies":[%q],"processes":2,"stock":400,"buyers":800}`, strategy), asJSON)
	id := webtest.Decode[runs.Summary](t, r).ID
	if r := webtest.Call(t, http.MethodPost, base+"/live/strikes", fmt.Sprintf(`{"fault":%q}`, f), asJSON); r.Status != http.StatusAccepted {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	return ended(t, base, id)
}

// TestRushStrikes: each fault takes effect in a running rush and proves that. A strategy with a lease
// breaks as promised. If the fault breaks no such strategy, the test uses one that holds. Its rush may be
// inconclusive: most buyers of a killed database get no answer. The faults of servers are injected
// into private servers. The live page sends its rushes with the same code.
func TestRushStrikes(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	for _, f := range fault.OfRush() {
		where, database := engine.Local, dialect.MySQL
		if f.TwoProcesses { // a fault that hits a process
			where, database = engine.Embedded, dialect.SQLite
		}
		breaks := leasedUnder(f.Name, database, verdict.Oversold)
		name := cmp.Or(breaks, leasedUnder(f.Name, database, verdict.Holds))
		t.Run(string(f.Name)+"/"+name, func(t *testing.T) {
			for tries := 1; ; tries++ { // a slow machine proves nothing
				code, stdout, stderr := shoptest.Exit(t, shoptest.Command(t, "rush", "--engine", where, "--strategy", name, "--stock", "200", "--buyers", "400",
					"--processes", "2", "--strike", string(f.Name), "--expect", "--json"))
				var report rush.Report
				if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Results) != 1 {
					t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
				}
				proven := slices.ContainsFunc(report.Strikes, func(s string) bool { return strings.HasPrefix(s, string(f.Name)+" took effect on "+name+" ") })
				switch {
				case proven && (code == 0 || code == exitInconclusive && breaks == ""):
					return
				case code != exitInconclusive || tries == 3:
					t.Fatalf("exit %d, proven %t: %s%s", code, proven, stdout, stderr)
				}
			}
		})
	}
}
