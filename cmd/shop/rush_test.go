package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/lockstrategytest"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestRush runs the main command as a user does: each strategy keeps its promise, with one process
// and with two, on both engines.
//
// Under make soak, the rush of two processes on real servers has the race detector. TestContract uses the
// race detector on the embedded engine.
func TestRush(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"embedded", "local"} {
		for _, processes := range []string{"1", "2"} {
			t.Run(engine+"/"+processes, func(t *testing.T) {
				t.Parallel()
				command := shoptest.Command
				if (engine == "local") != (processes == "2") {
					tier.Soak(t, "make test runs one process on SQLite and two processes on servers")
				}
				tier.Test(t, "it rushes every strategy")
				if engine == "local" && processes == "2" {
					command = shoptest.Raced
				}
				want := lockstrategy.Names()
				elsewhere := func(name string) bool { return !lockstrategytest.OnEmbedded(exploretest.Entry(t, name)) }
				switch {
				case engine == "embedded":
					want = slices.DeleteFunc(want, elsewhere)
				case !tier.Soaking(): // TestConformance runs the others with two processes
					some := []string{"none", "for-update", "named-lock", "unit-rows", "redis", "redlock"}
					want = slices.DeleteFunc(want, func(name string) bool { return !slices.Contains(some, name) })
				}
				code, stdout, stderr := shoptest.Exit(t, command(t, "rush", "--engine", engine, "--processes", processes, "--expect", "--json",
					"--strategy", strings.Join(want, ","), "--wait", "1m", "--lease", "2m")) // the race detector is slow, and the machine may be, too
				if code != 0 {
					t.Fatalf("exit %d: %s %s", code, stderr, stdout)
				}
				var report rush.Report
				require.NoError(t, json.Unmarshal([]byte(stdout), &report))
				var names []string
				for _, r := range report.Results {
					names = append(names, r.Strategy)
					checkResult(t, r)
				}
				if !slices.Equal(names, want) {
					t.Errorf("strategies %v, want %v", names, want)
				}
			})
		}
	}
}

func checkResult(t *testing.T, r rush.Result) {
	t.Helper()
	if r.MaxOverlap < 2 || r.MaxOverlap > 200 {
		t.Errorf("%s: %d buyers inside at once", r.Strategy, r.MaxOverlap)
	}
	if strings.HasPrefix(r.Reason, "during a restock of ") { // a restock deletes the records of earlier sales
		return
	}
	buyers := int64(200)
	if strings.HasPrefix(r.Reason, "after a restock of ") { // the smaller burst after a restock broke; the catalogue promises nothing for it
		buyers = 30
	}
	if r.Sold != r.Records || r.Lost != 0 || r.Untold != 0 || r.Sold+r.SoldOut+r.Busy != buyers {
		t.Errorf("%s: %+v: answers and records differ", r.Strategy, r)
	}
	if r.Promise == verdict.Holds && (r.Leftover != 0 || r.Records != 100 || r.Drift != 0) {
		t.Errorf("%s: %+v, want 0 left, 100 recorded, drift 0", r.Strategy, r)
	}
	if r.Promise == verdict.Oversold && r.Drift <= 0 && r.Oversold <= 0 {
		t.Errorf("%s: %+v, want lost updates or more sold than stocked", r.Strategy, r)
	}
}

// TestRushTable: the table has each column, and explains a violation. On a busy machine the buyers of
// `none` may come one after the other. Then `none` holds, and there is nothing to explain. A strategy
// that holds here and breaks under a fault is marked.
func TestRushTable(t *testing.T) {
	t.Parallel()
	code, stdout, _ := shoptest.RunRaced(t, "rush", "--strategy", "none,conditional,redis", "--stock", "20", "--buyers", "40")
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	wants := []string{
		"20 on sale, 40 buyers at once, embedded engine (SQLite ", "), 1 process", "leftover", "records", "oversold", "drift", "sold out",
		"busy", "errors", "p50", "p99", "purchases/s", "verdict", "conditional", "holds\n", "holds *\n", "; * breaks under pause, slow-section, short-lease and 4 more\n",
	}
	if strings.Count(stdout, "holds") < 3 {
		wants = append(wants, "none: ")
	}
	for _, want := range wants {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table lacks %q:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Error("colours where there is no terminal")
	}
}

// TestRushForeign: --target needs three routes of a service in any language. The rush distinguishes
// a correct service from incorrect ones, even if an incorrect one reports that all is well.
func TestRushForeign(t *testing.T) {
	tier.Test(t, "starts the command for each case")
	t.Parallel()
	for _, c := range []struct {
		name string
		shop *service
		code int
		says string
	}{
		{"sound", &service{}, 0, "holds"},
		{"sound, small pages", &service{pageLimit: 7}, 0, "holds"},
		{"sound, no history", &service{noHistory: true}, 0, "holds"},
		{"sells twice what it has", &service{oversell: true}, exitBroken, "my-lock: promised holds, seen oversold"},
		{"promises less than it keeps", &service{promise: "oversold"}, exitBroken, "my-lock: promised oversold, seen holds"},
		{"adds up wrongly", &service{oversell: true, audit: `{"oversold":0,"drift":0}`}, exitBroken, "seen oversold"},
		{"an audit of nothing", &service{audit: `{"stocked":null}`}, exitHarness, "stocked is missing"},
		{"puts more on sale than asked for", &service{stockMore: 50}, exitHarness, "another client has restocked"},
		{"tells every other buyer no, and sells", &service{untold: true}, exitBroken, "seen leaked"},
		{"the same, without a history", &service{untold: true, noHistory: true}, exitBroken, "seen leaked"},
		{"two units for one", &service{units: 2}, exitBroken, "seen lost"},
		{"sales without a record", &service{forges: true}, exitBroken, "6 sales were acknowledged and have no record"},
		{"sales without a record, without a history", &service{forges: true, noHistory: true}, exitBroken, "6 sales were acknowledged and have no record"},
		{"pages that do not go on", &service{pageLimit: 7, stuckPages: true}, exitHarness, "does not advance to another page"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.shop)
			defer server.Close()
			code, stdout, stderr := shoptest.RunRaced(t, "rush", "--target", server.URL, "--strategy", "my-lock", "--stock", "20", "--buyers", "60", "--expect")
			if code != c.code || !strings.Contains(stdout+stderr, c.says) {
				t.Errorf("exit %d, want %d and %q: %s%s", code, c.code, c.says, stdout, stderr)
			}
			if c.code == exitBroken {
				if code, stdout, stderr := shoptest.RunRaced(t, "rush", "--target", server.URL, "--strategy", "my-lock", "--stock", "20", "--buyers", "60"); code != 0 {
					t.Errorf("without --expect: exit %d: %s%s", code, stdout, stderr)
				}
			}
		})
	}
}

// TestRushOneAtATime: a shop that handles one buyer at a time proves nothing about its locks,
// although all buyers were sent at once.
func TestRushOneAtATime(t *testing.T) {
	t.Parallel()
	base := startServe(t, unhurried)
	var door sync.Mutex
	narrow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/product/buy" {
			door.Lock()
			defer door.Unlock()
		}
		forward(w, r, base)
	}))
	defer narrow.Close()
	code, stdout, stderr := shoptest.RunRaced(t, "rush", "--target", narrow.URL, "--strategy", "none", "--stock", "10", "--buyers", "20")
	if code != exitInconclusive || !strings.Contains(stdout, "no two buys") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

func forward(w http.ResponseWriter, r *http.Request, base string) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, base+r.URL.RequestURI(), r.Body)
	if err != nil {
		panic(err)
	}
	out.Header = r.Header
	answer, err := http.DefaultClient.Do(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

// TestNothingLeftBehind: servers and folders are gone after Ctrl-C, and after a SIGKILL at any
// time, although the shop itself cannot clean up then.
func TestNothingLeftBehind(t *testing.T) {
	t.Parallel()
	const serves = " serve --addr"
	for _, c := range []struct {
		name, engine string
		moment       string // the signal is sent when this command line appears
		signal       syscall.Signal
		code         int
	}{
		{"interrupt", "local", serves, syscall.SIGINT, exitInterrupted},
		{"kill", "local", serves, syscall.SIGKILL, -1},
		{"kill with the folder", "local", "/oversell-", syscall.SIGKILL, -1},
		{"kill with a Redis", "local", "redis-server|valkey-server", syscall.SIGKILL, -1},
		{"kill with the installer", "local", "mariadb-install-db|--initialize", syscall.SIGKILL, -1},
		{"kill with the installer's child", "local", "--bootstrap|--initialize", syscall.SIGKILL, -1},
		{"kill with the database", "local", "--bind-address", syscall.SIGKILL, -1},
		{"kill embedded with the folder", "embedded", "/oversell-", syscall.SIGKILL, -1},
		{"kill embedded", "embedded", serves, syscall.SIGKILL, -1},
	} {
		tmp := t.TempDir() // not the outer test's folder: the path of MariaDB's socket is limited to 107 bytes
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.engine == "local" {
				tier.Test(t, "needs servers")
			}
			rush := shoptest.Command(t, "rush", "--engine", c.engine, "--processes", "2", "--duration", "10m", "--strategy", "conditional")
			rush.Env = append(rush.Environ(), "TMPDIR="+tmp)
			if strings.Contains(c.name, "installer") {
				rush.Env = append(rush.Env, "HOME="+t.TempDir(), "XDG_CACHE_HOME=") // an empty cache, without a template of the database
			}
			require.NoError(t, rush.Start())
			// A slow test may miss that command line; then the command line of a shop counts.
			moment := regexp.MustCompile(c.moment + "|" + serves)
			for deadline := time.Now().Add(patience); !slices.ContainsFunc(shoptest.With(t, "TMPDIR="+tmp), moment.MatchString); {
				if time.Now().After(deadline) {
					t.Fatalf("not within %s: %s", patience, moment)
				}
			}
			require.NoError(t, rush.Process.Signal(c.signal))
			_ = rush.Wait()
			if got := rush.ProcessState.ExitCode(); got != c.code {
				t.Errorf("exit %d, want %d", got, c.code)
			}
			webtest.Eventually(t, "no process is left", func() bool { return len(shoptest.With(t, "TMPDIR="+tmp)) == 0 })
			// The processes that clean up have ended too, so no process could remove a file any
			// more.
			if left, err := filepath.Glob(filepath.Join(tmp, "*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// TestRushFor: in a long rush, a correct strategy holds in every burst, also while processes are
// killed. The rush detects a strategy that oversells.
func TestRushFor(t *testing.T) {
	t.Parallel()
	tier.Test(t, "lasts three seconds")
	run := func(args ...string) (report rush.Report) {
		t.Helper()
		code, stdout, stderr := shoptest.Run(t, append([]string{"rush", "--for", "1s", "--expect", "--json"}, args...)...)
		if code == exitInconclusive {
			t.Skip("the machine was too slow to show anything: " + stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
			t.Fatalf("exit %d, %v: %s%s", code, err, stderr, stdout)
		}
		if r := report.Results[0]; r.Verdict != verdict.Holds || r.Waves.All < 2 || r.Waves.Broke+r.Waves.Inconclusive > 0 || r.Drift != 0 || r.Records <= 100 {
			t.Errorf("%+v, %+v", r, r.Waves)
		}
		return report
	}
	if r := run("--strategy", "conditional,none").Results[1]; !verdict.Oversold.Keeps(r.Verdict) || r.Waves.Broke == 0 || r.Drift <= 0 || !strings.HasPrefix(r.Reason, "wave ") {
		t.Errorf("%+v, %+v", r, r.Waves)
	}
	if r := run("--strategy", "conditional", "--kill", "1s", "--processes", "2"); len(r.Strikes) == 0 || !strings.Contains(r.Strikes[0], "was killed with ") {
		t.Errorf("strikes %q", r.Strikes)
	}
}

// TestRushPostgres: on a private PostgreSQL each strategy does what the catalogue promises
// for its isolation level.
func TestRushPostgres(t *testing.T) {
	t.Parallel()
	tier.Test(t, "needs servers")
	for _, c := range []struct {
		database string
		verdicts map[string]string
	}{
		{dialect.Postgres, map[string]string{"transaction": "oversold", "conditional": "holds", "named-lock": "holds", "serializable": "holds"}},
		{dialect.PostgresRepeatableRead, map[string]string{"transaction": "holds", "named-lock": "holds"}},
	} {
		t.Run(c.database, func(t *testing.T) {
			if c.database != dialect.Postgres {
				tier.Soak(t, "TestAboveReadCommitted of internal/explore/promisetest explores PostgreSQL at REPEATABLE READ")
			}
			t.Parallel()
			var names []string
			for name := range c.verdicts {
				names = append(names, name)
			}
			code, stdout, stderr := shoptest.RunRaced(t, "rush", "--engine", "local", "--local-db", c.database, "--strategy", strings.Join(names, ","), "--wait", "60s", "--expect") // buyers that give up hide a lost update
			if code == exitInconclusive {
				t.Skip("the machine was too slow to show anything: " + stderr)
			}
			if code != 0 {
				t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
			}
			for name, verdict := range c.verdicts {
				if row := rowOf(stdout, name); !strings.HasSuffix(row, verdict) {
					t.Errorf("%s: %q, want %s", name, row, verdict)
				}
			}
		})
	}
}

// TestRushGalera runs two processes at two nodes of a cluster. Strategies that rely on the database
// hold, and they retry orders that the other node has rejected. A plain transaction oversells.
func TestRushGalera(t *testing.T) {
	tier.Soak(t, "starts a cluster of three databases")
	t.Parallel()
	code, stdout, stderr := shoptest.RunRaced(t, "rush", "--engine", "local", "--local-db", dialect.Galera, "--processes", "2",
		"--strategy", "transaction,for-update,fenced,redis-lua", "--expect")
	if code == exitInconclusive {
		t.Skip("the machine was too slow to show anything: " + stderr)
	}
	if code != 0 {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	for name, verdict := range map[string]string{"transaction": "oversold", "for-update": "holds", "fenced": "holds", "redis-lua": "holds"} {
		if row := rowOf(stdout, name); !strings.HasSuffix(row, verdict) {
			t.Errorf("%s: %q, want %s", name, row, verdict)
		}
	}
}

func rowOf(table, word string) string {
	for line := range strings.Lines(table) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == word {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// TestSoldOutRestocks: each strategy keeps its promise behind the sold-out check. The check is in
// use: the product sells out, is restocked, and sells out again, at two processes.
func TestSoldOutRestocks(t *testing.T) {
	tier.Soak(t, "20 strategies on two engines; TestReadBeginsLater of internal/purchase covers a restock during the read")
	t.Parallel()
	for _, args := range [][]string{{"--engine", "embedded"}, {"--engine", "local", "--processes", "2"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			args = append([]string{"rush", "--" + soldOutCheck, "--restocks", "4", "--expect", "--json", "--wait", "1m", "--lease", "2m"}, args...)
			code, stdout, stderr := shoptest.Exit(t, shoptest.Command(t, args...))
			var report rush.Report
			if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
				t.Fatalf("exit %d, %v: %s %s", code, err, stderr, stdout)
			}
			for _, r := range report.Results {
				checkResult(t, r)
			}
		})
	}
}

// TestUncheckable: the sold-out check is off on a database that does not support its read. A user
// that requests the check gets the reason in one line.
func TestUncheckable(t *testing.T) {
	t.Parallel()
	e := enginetest.Local(t)
	args := serveArgs(e)
	variable := "transaction_isolation"
	if strings.Contains(e.Server, "MariaDB") { // MariaDB before 11.1 has only this name
		variable = "tx_isolation"
	}
	args[1] += "?" + variable + "=%27READ-UNCOMMITTED%27"
	for _, command := range [][]string{
		{"serve", "--addr", "127.0.0.1:0", "--" + soldOutCheck},
		{"rush", "--strategy", "none", "--" + soldOutCheck},
	} {
		code, stdout, stderr := shoptest.RunRaced(t, append(command, args...)...)
		if code != exitHarness || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, soldOutCheck) || !strings.Contains(stderr, "READ UNCOMMITTED") {
			t.Errorf("%v: exit %d, %q %q; want %d and one line", command, code, stdout, stderr, exitHarness)
		}
	}
	base := startServe(t, args...) // without the flag, the check is off here
	if r := webtest.Call(t, http.MethodGet, base+"/product/buy", "", nil); r.Status != http.StatusOK {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}
