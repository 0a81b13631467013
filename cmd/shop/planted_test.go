package main

import (
	"bytes"
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
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/tier"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/web"
)

// plantedShop makes this test program a shop with the planted strategies.
const plantedShop = "SHOP_TEST_PLANTED"

// TestPlantedBugs: a correct strategy with a planted bug turns a cell red, and the same strategy
// without the bug does not. If the machine is too slow to distinguish stuck from slow, a cell that
// depends on this is skipped.
func TestPlantedBugs(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	for f, wants := range map[promise.Condition]map[string]verdict.Verdict{ // with the same fault, on the same servers
		promise.SlowSection: {
			"leased":             verdict.Holds,
			"no-token-check":     verdict.Oversold,
			"renewed":            verdict.Holds,
			"never-renewed":      verdict.Unlocked,
			"versioned":          verdict.Holds,
			"no-rows-affected":   verdict.Oversold,
			"asks-again":         verdict.Holds,
			"buys-twice":         verdict.Leaked,
			"remembers-sold-out": verdict.Leaked,
		},
		promise.Rush: {
			"room-for-one":       verdict.Holds,
			"room-for-two":       verdict.Unlocked,
			"kept-on-error":      verdict.Stalled,
			"renewed":            verdict.Holds,
			"missed-wake-up":     verdict.Stalled,
			"stale-retry":        verdict.Stalled,
			"retries":            verdict.Holds,
			"no-retry":           verdict.Stalled,
			"answers":            verdict.Holds,
			"by-one":             verdict.Holds, // orders of one unit do not show it
			"remembers-sold-out": verdict.Leaked,
			"left-open":          verdict.LeakedLock,
			"never-returns":      verdict.Stalled,
		},
		promise.ClientGone: {
			"leased":        verdict.Holds,
			"watchdog-leak": verdict.Stalled,
			"kept-on-error": verdict.Stalled,
		},
		promise.NodesDown: {
			"quorum":      verdict.Holds,
			"half-quorum": verdict.Oversold,
		},
		promise.Crash: {
			"answers":      verdict.Holds,
			"early-answer": verdict.Lost,
		},
		promise.DBKill: {
			"answers":  verdict.Holds,
			"lazy-log": verdict.Lost,
		},
		promise.Units: {
			"answers": verdict.Holds,
			"by-one":  verdict.Oversold,
		},
		promise.TwoProducts: {
			"leased":           verdict.Holds,
			"one-lock-for-all": verdict.Stalled,
			"mixes-products":   verdict.Leaked,
		},
		promise.Duplicates: {
			"answers":       verdict.Holds,
			"drops-key":     verdict.Duplicated,
			"remembers-key": verdict.Duplicated,
		},
		promise.LeaseRevoked: {
			"revocable":    verdict.Holds,
			"deaf-to-loss": verdict.Oversold,
		},
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			report, err := playPlanted(t, slices.Sorted(maps.Keys(wants)), f)
			code := exitInconclusive // or worse
			for _, cell := range report.Cells {
				want := wants[cell.Strategy]
				t.Run(cell.Strategy, func(t *testing.T) {
					t.Logf("%s: %s", cell.Verdict, cell.Evidence)
					if cell.Verdict == verdict.Inconclusive && (want == verdict.Stalled || want == verdict.Holds) {
						t.Skip("nobody can tell stuck from slow here: ", cell.Reason)
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
	for strategy, faults := range map[string][]promise.Condition{
		"unstoppable": {
			promise.TwoProducts, promise.Crash, promise.Pause, promise.SlowSection, promise.ClientGone, promise.RedisRestart,
			promise.RedisFailover, promise.NodeRestart, promise.ClockJump, promise.Partition,
		},
		"no-load": {promise.DBKill},
	} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			report, err := playPlanted(t, []string{strategy}, faults...)
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
	report, err := playPlanted(t, []string{"exits"}, append(exitsAt(), promise.ClientGone, promise.Latency)...)
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
func playPlanted(t *testing.T, strategies []string, faults ...promise.Condition) (report verify.Report, _ error) {
	t.Helper()
	var stdout bytes.Buffer
	var stderr syncBuffer // of two shops
	o := verifyOptions{
		strategies: strategies, engine: engine.Local, lanes: min(2, len(strategies)), repeat: 1, history: t.TempDir(),
		launch: func(times fault.Times) *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = []string{plantedShop + "=" + times.Wait.String() + "," + times.Lease.String()}
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
				return verify.LockRules{Excludes: c != promise.LeaseRevoked, Keeps: strings.HasSuffix(name, "renewed")}
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

// plantedNeeds returns Redis and the Redlock nodes, since a restock resets the locks of all planted
// strategies, and etcd if a fault needs it.
func plantedNeeds(faults []promise.Condition) []lockstrategy.Need {
	needs := []lockstrategy.Need{lockstrategy.NeedsRedis, lockstrategy.NeedsRedlock}
	if slices.Contains(faults, promise.LeaseRevoked) {
		needs = append(needs, lockstrategy.NeedsEtcd)
	}
	return needs
}

// servePlanted runs `shop serve --failpoints` with the planted strategies.
func servePlanted() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	wait, lease, _ := strings.Cut(os.Getenv(plantedShop), ",")
	var times fault.Times
	var err error
	if times.Wait, err = time.ParseDuration(wait); err == nil {
		times.Lease, err = time.ParseDuration(lease)
	}
	if err != nil {
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
	config.Wait, config.Lease, config.Conns, config.WrapDB = times.Wait, times.Lease, defaultConns, flags.Failpoints.Connector
	e, err := engine.Open(ctx, config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer e.Close()
	s := web.New(e, flags, slog.New(slog.DiscardHandler))
	deps := onengine.Deps(e)
	deps.Settings, deps.Observe = flags.Settings, s.Observe
	unstopped := deps
	unstopped.DB = e.Admin
	for name, strategy := range map[string]purchase.Strategy{
		"left-open":          &leftOpen{deps},
		"never-returns":      &neverReturning{lockstrategy.NewConditional(deps)},
		"leased":             &leased{Deps: deps, name: "leased", checkToken: true},
		"no-token-check":     &leased{Deps: deps, name: "no-token-check"},
		"watchdog-leak":      &leased{Deps: deps, name: "watchdog-leak", checkToken: true, leak: true},
		"kept-on-error":      &leased{Deps: deps, name: "kept-on-error", checkToken: true, keep: true},
		"renewed":            lockstrategy.NewWatchdog(deps),
		"never-renewed":      lockstrategy.NewWatchdog(neverRenewed(deps)),
		"room-for-one":       newRoomy(deps, 1),
		"room-for-two":       newRoomy(deps, 2),
		"missed-wake-up":     &notifying{Deps: deps, freed: make(chan struct{}, 1)},
		"retries":            lockstrategy.NewOptimistic(deps),
		"stale-retry":        newVersioned(deps, "stale-retry", true, true),
		"no-retry":           &versioned{Deps: deps, name: "no-retry", checkRows: true, once: true, rounds: make(chan struct{}, 40)},
		"versioned":          newVersioned(deps, "versioned", true, false),
		"no-rows-affected":   newVersioned(deps, "no-rows-affected", false, false),
		"quorum":             newQuorate(deps, "quorum", len(e.Redlock)/2+1),
		"half-quorum":        newQuorate(deps, "half-quorum", len(e.Redlock)/2), // the bug
		"answers":            &answering{Deps: deps, name: "answers"},
		"early-answer":       &answering{Deps: deps, name: "early-answer", early: true},
		"exits":              &exiting{lockstrategy.NewConditional(deps), exitsAt()},
		"lazy-log":           &lazyLog{Strategy: lockstrategy.NewConditional(deps), db: e.Admin},
		"unstoppable":        lockstrategy.NewConditional(unstopped), // sells without passing a failpoint
		"no-load":            &noLoad{lockstrategy.NewConditional(deps)},
		"asks-again":         &askingAgain{purchase.NewIdempotent(lockstrategy.NewConditional(deps), e.DB), true},
		"by-one":             &answering{Deps: deps, name: "by-one", byOne: true},
		"one-lock-for-all":   &leased{Deps: deps, name: "one-lock-for-all", checkToken: true, oneForAll: true},
		"mixes-products":     &answering{Deps: deps, name: "mixes-products", mixed: true},
		"drops-key":          &dropping{Strategy: &answering{Deps: deps, name: "drops-key"}},
		"remembers-key":      &dropping{Strategy: &answering{Deps: deps, name: "remembers-key"}, remembers: true},
		"remembers-sold-out": &remembering{Strategy: &answering{Deps: deps, name: "remembers-sold-out"}},
		"revocable":          &revocable{Deps: deps, name: "revocable"},
		"deaf-to-loss":       &revocable{Deps: deps, name: "deaf-to-loss", deaf: true},
		"buys-twice":         &askingAgain{purchase.NewIdempotent(lockstrategy.NewConditional(deps), e.DB), false},
	} {
		s.Add(name, strategy)
	}
	if err := s.Serve(ctx, "127.0.0.1:0", "", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
