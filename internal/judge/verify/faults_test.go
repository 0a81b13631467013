package verify_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web"
)

// TestFaults plays cells of each class of faults. A strategy that the fault breaks must break, and one that
// survives it must hold. The patches of trackrecord/planted cover mistakes that no strategy of the catalogue
// makes. If the machine is too slow to distinguish stuck from slow, a cell that depends on this is skipped.
func TestFaults(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	proofs := map[promise.Condition]string{}
	if tier.Soaking() { // on a slow machine, the buyers may be too late for these
		proofs[promise.ReleaseCut] = "the next buyer got in and stood before its COMMIT"
		proofs[promise.ServerHang] = "when a buyer was about to send its release; 4 of 4 buyers gave up"
	}
	for f, wants := range map[promise.Condition]map[string]verdict.Verdict{ // the strategies of one fault run on the same servers
		promise.SlowSection:  {"watchdog": verdict.Holds, "redis": verdict.Oversold},
		promise.Pause:        {"fenced": verdict.Holds, "redis": verdict.Oversold},
		promise.Crash:        {"redis": verdict.Holds, "setnx": verdict.Stalled, "redis-decr": verdict.Leaked},
		promise.ShortLease:   {"watchdog": verdict.Holds, "redis": verdict.Oversold},
		promise.ClientGone:   {"watchdog": verdict.Holds},
		promise.Connections:  {"redis": verdict.Holds},
		promise.ClientClock:  {"redis": verdict.Holds, "getset": verdict.Oversold},
		promise.RedisRestart: {"fenced": verdict.Holds, "redis": verdict.Oversold},
		promise.Partition:    {"watchdog": verdict.Holds, "redis": verdict.Oversold},
		promise.ReleaseCut:   {"redis": verdict.Holds, "setnx": verdict.Stalled},
		promise.ServerHang:   {"setnx-ttl": verdict.Holds, "setnx-expire": verdict.Stalled},
		promise.DBKill:       {"conditional": verdict.Holds, "redis-decr": verdict.Leaked},
	} {
		t.Run(string(f), func(t *testing.T) {
			if slices.Contains([]promise.Condition{promise.SlowSection, promise.ShortLease, promise.ClientGone, promise.Connections, promise.ServerHang}, f) {
				tier.Soak(t, "make test injects only seven of the twelve faults")
			}
			t.Parallel()
			rows, err := verify.Catalogue("", "", false)
			require.NoError(t, err)
			rows = slices.DeleteFunc(rows, func(s verify.Strategy) bool { return wants[s.Name] == "" })
			times := fault.DefaultTimes()
			if f == promise.Connections {
				times.Wait = 2 * times.Lease // stuck buyers use up the whole wait several times
			}
			report := play(t, rows, times, builtShop(t), f)
			expect.Equal(t, len(report.Cells), len(wants), "cells")
			for _, cell := range report.Cells {
				want := wants[cell.Strategy]
				switch {
				case cell.Verdict == verdict.Inconclusive && (want == verdict.Stalled || want == verdict.Holds):
					t.Logf("%s: stuck and slow are the same here: %s", cell.Strategy, cell.Reason)
				case !want.Keeps(cell.Verdict) || !cell.OK || strings.Contains(cell.Evidence, fault.ErrMissed.Error()), !strings.Contains(cell.Evidence, proofs[f]):
					t.Errorf("%s: %s, as promised %t, want %s: %s", cell.Strategy, cell.Verdict, cell.OK, want, cell.Evidence)
				}
			}
		})
	}
}

func builtShop(t *testing.T) fault.Launch {
	path := shoptest.Path(t)
	return func(times fault.Times) *exec.Cmd {
		cmd := fault.OwnShop(times)
		cmd.Path = path
		return cmd
	}
}

func play(t *testing.T, rows []verify.Strategy, times fault.Times, launch fault.Launch, faults ...promise.Condition) verify.Report {
	t.Helper()
	report, err := verify.Config{
		Strategies: rows, Faults: faults, Ended: func(verify.Cell, verify.Report) {}, Progress: func(string, ...any) {},
		Launch: launch, Times: times, Redlock: engine.RedlockNodes, History: t.TempDir(), Lanes: min(2, len(rows)), Repeat: 1,
	}.Local(t.Context())
	expect.NoError(t, err)
	return report
}

// oddShop is the environment variable that makes this test program a shop. Its strategies end their shop, or no
// fault can affect them.
const oddShop = "VERIFY_TEST_SHOP"

func TestMain(m *testing.M) {
	if os.Getenv(oddShop) == "" {
		os.Exit(m.Run())
	}
	if err := serveOdd(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestFaultsThatMiss: a cell proves nothing if no buyer was stopped while it held the lock, or if nothing was
// sold before the kill. That applies even if the burst bought everything, and stock and records agree.
func TestFaultsThatMiss(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	times := fault.DefaultTimes()
	times.Lease = 300 * time.Millisecond // these strategies have no lease
	unstoppable := []promise.Condition{promise.Crash, promise.RedisRestart}
	if tier.Soaking() {
		unstoppable = append(unstoppable, promise.TwoProducts, promise.Pause, promise.SlowSection, promise.ShortLease, promise.ClientGone,
			promise.Connections, promise.ClientClock, promise.Partition, promise.ReleaseCut, promise.ServerHang, promise.SuccessiveFailures,
			promise.RedisFailover, promise.NodeRestart, promise.ClockJump)
	}
	for strategy, faults := range map[string][]promise.Condition{"unstoppable": unstoppable, "no-load": {promise.DBKill}} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			report := playOdd(t, strategy, times, faults...)
			expect.Equal(t, len(report.Cells), len(faults), "cells")
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

// exitsAt returns the faults under which the strategy "exits" ends its process.
func exitsAt() []promise.Condition {
	return []promise.Condition{promise.Crash, promise.Pause, promise.SlowSection}
}

// TestHarnessErrorsInARow: after any number of failed cells, the next cell gets clean servers.
func TestHarnessErrorsInARow(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	report := playOdd(t, "exits", fault.DefaultTimes(), append(exitsAt(), promise.ClientGone, promise.Latency)...)
	expect.Equal(t, len(report.Cells), len(exitsAt())+2, "cells")
	for i, cell := range report.Cells {
		t.Logf("%s: %s, %d ms: %s", cell.Fault, cell.Verdict, cell.DurationMS, cell.Evidence)
		failed := slices.Contains(exitsAt(), cell.Fault)
		if failed != (cell.HarnessError != "") || failed == cell.OK || cell.DurationMS == 0 {
			t.Errorf("cell %d: %+v", i, cell)
		}
	}
}

// playOdd plays cells of a strategy of serveOdd, which promises to hold. It needs Redis, since a restock resets
// locks there, and the Redlock nodes if a fault affects only those.
func playOdd(t *testing.T, strategy string, times fault.Times, faults ...promise.Condition) verify.Report {
	t.Helper()
	needs := []lockstrategy.Need{lockstrategy.NeedsRedis}
	if slices.Contains(faults, promise.NodeRestart) {
		needs = append(needs, lockstrategy.NeedsRedlock)
	}
	row := verify.Strategy{
		Subject:  fault.Subject{Name: strategy, Needs: needs},
		Promised: func(promise.Condition) verdict.Verdict { return verdict.Holds },
		Lock:     func(promise.Condition) verify.LockRules { return verify.LockRules{Excludes: true} },
	}
	var stderr shoptest.Buffer // output of two shops
	defer func() {
		if t.Failed() {
			t.Log(stderr.String())
		}
	}()
	return play(t, []verify.Strategy{row}, times, func(times fault.Times) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{"GIN_MODE=release", fmt.Sprintf("%s=%s %s %d", oddShop, times.Wait, times.Lease, times.Conns)}
		cmd.Stderr = &stderr
		return cmd
	}, faults...)
}

// serveOdd runs `shop serve --failpoints` with the odd strategies.
func serveOdd() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var wait, lease string
	config, err := engine.FromEnviron()
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(os.Getenv(oddShop), &wait, &lease, &config.Conns); err != nil {
		return err
	}
	points := failpoint.New(os.Stdout)
	config.Wait, _ = time.ParseDuration(wait)
	config.Lease, _ = time.ParseDuration(lease)
	config.Conns, config.WrapDB = cmp.Or(config.Conns, 64), points.Connector
	e, err := engine.Open(ctx, config)
	if err != nil {
		return err
	}
	defer e.Close()
	flags := web.Config{Settings: lockstrategy.Settings{Wait: config.Wait, LeaseTTL: config.Lease, Poll: 25 * time.Millisecond}, MaxInflight: 2_000, Failpoints: points}
	s := web.New(e, flags, slog.New(slog.DiscardHandler))
	deps := onengine.Deps(e)
	deps.Settings, deps.Observe, deps.Now = flags.Settings, s.Observe, points.Now
	conditional := lockstrategy.NewConditional(deps)
	s.Add("exits", &exiting{conditional})
	s.Add("no-load", &noLoad{conditional})
	deps.DB = e.Admin
	s.Add("unstoppable", lockstrategy.NewConditional(deps)) // sells without passing a failpoint
	return s.Serve(ctx, "127.0.0.1:0", "", os.Stdout)
}

// noLoad refuses the buyers that a fault sends as load.
type noLoad struct{ purchase.Strategy }

func (s *noLoad) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	if strings.HasPrefix(o.Purchaser, "load") {
		return purchase.Receipt{}, purchase.ErrBusy
	}
	return s.Strategy.Buy(ctx, o)
}

// exiting sells correctly, except for the product of a fault in exitsAt, where it ends its shop's process.
type exiting struct{ purchase.Strategy }

func (s *exiting) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	if slices.ContainsFunc(exitsAt(), func(f promise.Condition) bool { return strings.HasSuffix(o.Product, "-"+string(f)) }) {
		os.Exit(1)
	}
	return s.Strategy.Buy(ctx, o)
}
