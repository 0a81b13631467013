package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web"
)

// shortLease is for cells that only wait for the end of a lease.
const shortLease = 300 * time.Millisecond

// shortLeases are the leases in cells whose fault has to outlast them. In a slow section, another buyer
// must get in within a quarter of its own lease. In a partition, a lock without a fence holds only if its
// COMMIT ends within the last tenth of the lease. Under the other faults, nothing waits for a lease to
// end, and an idle time as long as a lease counts as stuck: a slow machine needs a longer one.
var shortLeases = map[promise.Condition]time.Duration{promise.Pause: shortLease, promise.Partition: time.Second, promise.SlowSection: time.Second}

// plantedShop makes this test program a shop with the planted strategies.
const plantedShop = "SHOP_TEST_PLANTED"

// TestPlantedBugs: in a cell of each class of faults, a strategy with a planted bug turns the cell
// red, and a correct one does not. If the machine is too slow to distinguish stuck from slow, a cell
// that depends on this is skipped.
//
// These strategies are here, and not among the patches of trackrecord/planted, because the shops under
// test are this test program.
func TestPlantedBugs(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	for f, wants := range map[promise.Condition]map[string]verdict.Verdict{ // with the same fault, on the same servers
		promise.SlowSection: {
			"leased":             verdict.Holds,
			"no-token-check":     verdict.Oversold,
			"renewed":            verdict.Holds,
			"never-renewed":      verdict.Unlocked,
			"remembers-sold-out": verdict.Leaked,
		},
		promise.ClientGone: {
			"leased":        verdict.Holds,
			"watchdog-leak": verdict.Stalled,
		},
		promise.ShortLease: {
			"renewed":        verdict.Holds,
			"outlives-lease": verdict.Oversold,
		},
		promise.Connections: {
			"leased":           verdict.Holds,
			"keeps-connection": verdict.Stalled,
		},
		promise.ClientClock: {
			"leased":      verdict.Holds,
			"client-time": verdict.Oversold,
		},
		promise.Crash: {
			"answers":      verdict.Holds,
			"early-answer": verdict.Lost,
		},
		promise.Pause: {
			"with-fence": verdict.Holds,
			"leased":     verdict.Oversold, // no fence
		},
		promise.RedisRestart: {
			"with-fence": verdict.Holds,
			"leased":     verdict.Oversold, // no fence
		},
		promise.Partition: {
			"leased":         verdict.Holds,
			"outlives-lease": verdict.Oversold,
		},
		promise.DBKill: {
			"answers":  verdict.Holds,
			"lazy-log": verdict.Lost,
		},
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			times := fault.DefaultTimes()
			times.Lease = cmp.Or(shortLeases[f], times.Lease)
			if f == promise.Connections {
				times.Wait = 2 * times.Lease // its stuck buyers wait to the end, again and again
			}
			report, err := playPlanted(t, times, slices.Sorted(maps.Keys(wants)), f)
			code := exitInconclusive // or worse
			for _, cell := range report.Cells {
				want := wants[cell.Strategy]
				t.Run(cell.Strategy, func(t *testing.T) {
					t.Logf("%s: %s", cell.Verdict, cell.Evidence)
					if cell.Verdict == verdict.Inconclusive && (want == verdict.Stalled || want == verdict.Holds) {
						t.Skip("nobody can tell stuck from slow here: ", cell.Reason)
					}
					if want != verdict.Holds && strings.Contains(cell.Evidence, fault.ErrMissed.Error()) {
						t.Error("the bug was caught without the fault")
					}
					if !want.Keeps(cell.Verdict) || cell.OK != (want == verdict.Holds) {
						t.Errorf("%s, as promised %t, want %s", cell.Verdict, cell.OK, want)
					}
					if !cell.OK {
						code = exitBroken
					}
				})
			}
			var exit *exitError
			if len(report.Cells) != len(wants) || !errors.As(err, &exit) || exit.code != code {
				t.Errorf("%v, %d cells, want exit %d and %d", err, len(report.Cells), code, len(wants))
			}
		})
	}
}

// TestFaultsThatMiss: a cell proves nothing if no buyer was stopped while it held, or if nothing
// was sold before the kill. This holds even if its burst bought everything, and stock and records
// agree.
func TestFaultsThatMiss(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	times := fault.DefaultTimes()
	times.Lease = shortLease // these strategies have none
	for strategy, faults := range map[string][]promise.Condition{
		"unstoppable": {
			promise.TwoProducts, promise.Crash, promise.Pause, promise.SlowSection, promise.ShortLease, promise.ClientGone,
			promise.Connections, promise.RedisRestart, promise.ClientClock,
			promise.RedisFailover, promise.NodeRestart, promise.ClockJump, promise.Partition,
		},
		"no-load": {promise.DBKill},
	} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			report, err := playPlanted(t, times, []string{strategy}, faults...)
			var exit *exitError
			if len(report.Cells) != len(faults) || !errors.As(err, &exit) || exit.code != exitInconclusive {
				t.Errorf("%v and %d cells, want exit %d and %d", err, len(report.Cells), exitInconclusive, len(faults))
			}
			for _, cell := range report.Cells {
				t.Run(string(cell.Fault), func(t *testing.T) {
					slow := cell.NextSaleMS != nil && *cell.NextSaleMS > cell.BoundMS/2
					switch {
					case cell.Verdict == verdict.Inconclusive && cell.Audited.Drift == 0 && cell.Audited.Leftover != 0 && slow:
						t.Skipf("the next sale came after %d ms of %d, too late for the burst to buy everything", *cell.NextSaleMS, cell.BoundMS)
					case cell.Verdict != verdict.Inconclusive || cell.Audited.Leftover != 0 || cell.Audited.Drift != 0:
						t.Errorf("%s, %+v, %s", cell.Verdict, cell.Audited, cell.Evidence)
					}
				})
			}
		})
	}
}

// TestHarnessErrorsInARow: after any number of failed cells, the next ones have clean servers.
func TestHarnessErrorsInARow(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	report, err := playPlanted(t, fault.DefaultTimes(), []string{"exits"}, append(exitsAt(), promise.ClientGone, promise.Latency)...)
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != exitBroken || len(report.Cells) != len(exitsAt())+2 {
		t.Errorf("%v and %d cells, want exit %d", err, len(report.Cells), exitBroken)
	}
	for i, cell := range report.Cells {
		t.Logf("%s: %s, %d ms: %s", cell.Fault, cell.Verdict, cell.DurationMS, cell.Evidence)
		failed := slices.Contains(exitsAt(), cell.Fault)
		if failed != (cell.HarnessError != "") || failed == cell.OK || cell.DurationMS == 0 {
			t.Errorf("cell %d: %+v", i, cell)
		}
	}
}

// exitsAt returns the faults under which the strategy "exits" ends its process.
func exitsAt() []promise.Condition {
	return []promise.Condition{promise.Crash, promise.Pause, promise.SlowSection}
}

// playPlanted runs `shop verify` with planted strategies, which promise to hold.
func playPlanted(t *testing.T, times fault.Times, strategies []string, faults ...promise.Condition) (report verify.Report, _ error) {
	t.Helper()
	var stdout bytes.Buffer
	var stderr syncBuffer // of two shops
	o := verifyOptions{
		strategies: strategies, engine: engine.Local, lanes: min(2, len(strategies)), repeat: 1, history: t.TempDir(), times: times,
		lease: fault.DefaultTimes().Lease, redlock: engine.RedlockNodes, // times is shorter than a user may ask for
		launch: func(times fault.Times) *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = []string{fmt.Sprintf("%s=%s,%s,%d", plantedShop, times.Wait, times.Lease, times.Conns)}
			cmd.Stderr = &stderr
			return cmd
		},
		output: verifyOutput{old: [4]string{"-"}},
	}
	for _, name := range strategies {
		o.extra = append(o.extra, verify.Strategy{
			Subject:  fault.Subject{Name: name, Needs: plantedNeeds(faults)},
			Promised: func(promise.Condition) verdict.Verdict { return verdict.Holds },
			Lock: func(c promise.Condition) verify.LockRules {
				lock := lockstrategy.LockPromise{Renewed: strings.HasSuffix(name, "renewed")}
				return verify.LockRules{Excludes: name != "with-fence", Keeps: lock.KeptUnder(c)}
			},
		})
	}
	o.faults = texts(faults)
	err := playVerify(t, &o, &stdout, &stderr)
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Errorf("no report: %v; %s", err, stderr.String())
	}
	return report, err
}

// plantedNeeds returns Redis, since a restock resets the locks of all planted strategies, and the
// Redlock nodes if a fault affects only those.
func plantedNeeds(faults []promise.Condition) []lockstrategy.Need {
	needs := []lockstrategy.Need{lockstrategy.NeedsRedis}
	if slices.Contains(faults, promise.NodeRestart) {
		needs = append(needs, lockstrategy.NeedsRedlock)
	}
	return needs
}

// servePlanted runs `shop serve --failpoints` with the planted strategies.
func servePlanted() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var times fault.Times
	words := append(strings.Split(os.Getenv(plantedShop), ","), "", "")
	wait, err1 := time.ParseDuration(words[0])
	lease, err2 := time.ParseDuration(words[1])
	conns, err3 := strconv.Atoi(words[2])
	times.Wait, times.Lease, times.Conns = wait, lease, cmp.Or(conns, defaultConns)
	if err := errors.Join(err1, err2, err3); err != nil {
		fmt.Fprintln(os.Stderr, plantedShop, err)
		return 1
	}
	flags := web.Config{
		Settings:    lockstrategy.Settings{Wait: times.Wait, LeaseTTL: times.Lease, Poll: 25 * time.Millisecond},
		MaxInflight: 2_000, Failpoints: failpoint.New(os.Stdout),
	}
	config, err := engine.FromEnviron()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	config.Wait, config.Lease, config.Conns, config.WrapDB = times.Wait, times.Lease, times.Conns, flags.Failpoints.Connector
	e, err := engine.Open(ctx, config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer e.Close()
	s := web.New(e, flags, slog.New(slog.DiscardHandler))
	deps := onengine.Deps(e)
	deps.Settings, deps.Observe, deps.Now = flags.Settings, s.Observe, flags.Failpoints.Now
	fenced, _ := lockstrategy.ByName("fenced")
	byClient, _ := lockstrategy.ByName("getset")
	unstopped := deps
	unstopped.DB = e.Admin
	for name, strategy := range map[string]purchase.Strategy{
		"leased":             &leased{Deps: deps, name: "leased", checkToken: true},
		"no-token-check":     &leased{Deps: deps, name: "no-token-check"},
		"with-fence":         fenced.New(deps),
		"outlives-lease":     &leased{Deps: deps, name: "outlives-lease", checkToken: true, outlives: true},
		"keeps-connection":   &keepingConnection{&leased{Deps: deps, name: "keeps-connection", checkToken: true}},
		"client-time":        byClient.New(deps),
		"watchdog-leak":      &leased{Deps: deps, name: "watchdog-leak", checkToken: true, leak: true},
		"renewed":            lockstrategy.NewWatchdog(deps),
		"never-renewed":      lockstrategy.NewWatchdog(neverRenewed(deps)),
		"answers":            &answering{Deps: deps, name: "answers"},
		"early-answer":       &answering{Deps: deps, name: "early-answer", early: true},
		"exits":              &exiting{lockstrategy.NewConditional(deps), exitsAt()},
		"lazy-log":           &lazyLog{Strategy: lockstrategy.NewConditional(deps), db: e.Admin},
		"unstoppable":        lockstrategy.NewConditional(unstopped), // sells without passing a failpoint
		"no-load":            &noLoad{lockstrategy.NewConditional(deps)},
		"remembers-sold-out": &remembering{Strategy: &answering{Deps: deps, name: "remembers-sold-out"}},
	} {
		s.Add(name, strategy)
	}
	if err := s.Serve(ctx, "127.0.0.1:0", "", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
