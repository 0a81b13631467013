package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/tier"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/matrix"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// TestVerifyRace runs the same as CI. The command builds the shop with the race detector, and the
// strategies that keep something in memory hold in it.
func TestVerifyRace(t *testing.T) {
	tier.Test(t, "-short builds no shop")
	t.Parallel()
	out, err := plainCommand(t, "verify", "--race", "--json").Output()
	var report verify.Report
	if failed := json.Unmarshal(out, &report); err != nil || failed != nil || !report.OK {
		t.Fatalf("%v, %v: %s", err, failed, out)
	}
	for _, e := range lockstrategy.All() {
		played := slices.ContainsFunc(report.Cells, func(c verify.Cell) bool { return c.Strategy == e.Name && c.Fault == promise.FirstUse })
		if played != e.InMemory {
			t.Errorf("%s: in memory %t, played %t", e.Name, e.InMemory, played)
		}
	}
}

// TestVerifyRacePlanted: a map without its lock is a race, in a rush and at its first use. A lock
// that is looked up in one step and created in another is no race for the detector, works once it
// exists, and breaks at its first use. With both bugs fixed, everything holds.
func TestVerifyRacePlanted(t *testing.T) {
	build, ok := debug.ReadBuildInfo()
	if !ok || !slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("this test program is its own shop, and is built without -race")
	}
	t.Parallel()
	for _, c := range []struct {
		strategy string
		fault    promise.Condition
		want     []verdict.Verdict
	}{
		{"map-with-lock", promise.Rush, []verdict.Verdict{verdict.Holds}},
		{"map-with-lock", promise.FirstUse, []verdict.Verdict{verdict.Holds}},
		{"map-without-lock", promise.Rush, []verdict.Verdict{verdict.Raced}},
		{"map-without-lock", promise.FirstUse, []verdict.Verdict{verdict.Raced}},
		{"check-then-create", promise.FirstUse, []verdict.Verdict{verdict.Oversold, verdict.Drifted}},
	} {
		t.Run(c.strategy+" under "+string(c.fault), func(t *testing.T) {
			t.Parallel()
			cell, err := raceCell(t, c.strategy, c.fault)
			t.Logf("%s: %s", cell.Verdict, cell.Evidence)
			var exit *exitError
			red := errors.As(err, &exit) && exit.code == exitBroken
			if !slices.Contains(c.want, cell.Verdict) || red == (c.want[0] == verdict.Holds) {
				t.Errorf("%s, %v; want %v", cell.Verdict, err, c.want)
			}
			if cell.Verdict == verdict.Raced && !strings.Contains(cell.DataRace, "verify_race_test.go") {
				t.Errorf("the place of the race is not told: %s", cell.DataRace)
			}
		})
	}
}

// raceCell runs `shop verify --race` with this program as the shop with the race detector.
func raceCell(t *testing.T, strategy string, f promise.Condition) (verify.Cell, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o := verifyOptions{
		strategies: []string{strategy}, faults: []string{string(f)}, race: true, engine: engine.Embedded, lanes: 1, repeat: 1,
		raceShop: func(string) *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = []string{plantedShop + "=" + matrix.RaceWait.String() + "," + matrix.RaceWait.String()}
			return cmd
		},
		extra:  []verify.Strategy{{Subject: fault.Subject{Name: strategy}}},
		output: verifyOutput{old: [4]string{"-"}},
	}
	err := playVerify(t, &o, &stdout, &stderr)
	var report verify.Report
	if failed := json.Unmarshal(stdout.Bytes(), &report); failed != nil || len(report.Cells) != 1 {
		t.Fatalf("%v, %v: %s", err, failed, stderr.String())
	}
	return report.Cells[0], err
}

// TestVerifyRaceBadInput: if the build's requirements are missing, one line says which, with exit
// 2.
func TestVerifyRaceBadInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env, args []string
		dir, want string
	}{
		"no Go":          {[]string{"PATH=/no/such"}, []string{"--strategy", "mutex"}, "", "there is no go in PATH"},
		"no cgo":         {[]string{"CGO_ENABLED=0"}, []string{"--strategy", "mutex"}, "", "requires cgo"},
		"no C compiler":  {[]string{"CC=/no/such/cc"}, []string{"--strategy", "mutex"}, "", "/no/such/cc"},
		"no checkout":    {nil, []string{"--strategy", "mutex"}, t.TempDir(), "go.mod"},
		"with quick":     {nil, []string{"--quick"}, "", "--quick"},
		"with an engine": {nil, []string{"--engine", "local"}, "", "--engine"},
		"with a fault":   {nil, []string{"--fault", "pause"}, "", "pause"},
		"no cell":        {nil, []string{"--strategy", "zookeeper"}, "", "no cell can run here: zookeeper: "},
	} {
		t.Run(name, func(t *testing.T) {
			shop := plainCommand(t, append([]string{"verify", "--race"}, c.args...)...)
			shop.Env, shop.Dir = append(shop.Environ(), c.env...), c.dir
			code, stdout, stderr := exitOfCommand(t, shop)
			if said := strings.TrimSpace(stderr); code != exitHarness || stdout != "" || strings.Contains(said, "\n") || !strings.Contains(said, c.want) {
				t.Errorf("exit %d, %q, printed %q; want 2 and one line with %q", code, said, stdout, c.want)
			}
		})
	}
}

// mapped sells under a mutex that it keeps in a map for each product.
type mapped struct {
	purchase.Strategy               // the naive section
	guard             *sync.RWMutex // of the map; nil: the bug
	lookAgain         bool          // before it creates a mutex; false: the bug
	locks             map[string]*sync.Mutex
	lookups           int // number of reads of the map
}

func (s *mapped) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	lock := s.lock(o.Product)
	lock.Lock()
	defer lock.Unlock()
	return s.Strategy.Buy(ctx, o)
}

func (s *mapped) lock(product string) *sync.Mutex {
	if s.guard == nil {
		// Every lookup writes. If only the first one did, the race might be over on a slow machine
		// before a second buyer comes, and the detector could not report it.
		s.lookups++
		if s.locks[product] == nil {
			s.locks[product] = new(sync.Mutex)
		}
		return s.locks[product]
	}
	s.guard.RLock()
	lock := s.locks[product]
	s.guard.RUnlock()
	if lock != nil {
		return lock
	}
	time.Sleep(time.Millisecond) // stands for opening a connection
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.locks[product] == nil || !s.lookAgain {
		s.locks[product] = new(sync.Mutex)
	}
	return s.locks[product]
}
