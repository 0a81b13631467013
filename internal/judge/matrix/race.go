package matrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/web"
)

// RaceWait is a buyer's wait and a lease in a shop that the race detector slows down five to ten
// times. A slow machine must not look like a lock that hangs.
const RaceWait = 45 * time.Second

// firstUses is the number of processes that a cell starts for a first use each.
const firstUses = 5

// UnderRace plays rushes in a shop that it builds with the race detector. If all is true, it plays
// only the strategies that keep something in memory. start returns the command of a shop with the
// race detector; if it is nil, UnderRace builds this program.
func (c Config) UnderRace(ctx context.Context, all bool, start func(addr string) *exec.Cmd) (_ verify.Report, err error) {
	r := &raceRun{ctx: ctx, start: start}
	cells := c.start(engine.Embedded)
	if r.folder, err = os.MkdirTemp("", "shop-race-"); err != nil {
		return cells.report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.folder)) }()
	if r.engine, err = engine.Open(ctx, engine.Config{Name: engine.Embedded, Wait: RaceWait, Lease: RaceWait, Conns: c.Conns}); err != nil {
		return cells.report, err
	}
	defer func() { err = errors.Join(err, r.engine.Close()) }()
	for _, s := range c.Strategies {
		entry, ours := lockstrategy.ByName(s.Name)
		if all && !entry.InMemory {
			continue
		}
		if why := entry.Missing(onengine.Deps(r.engine)); ours && why != "" {
			cells.report.LeaveOut(s.Name + ": " + why)
			continue
		}
		if r.start == nil {
			c.Progress("building the shop with the race detector")
			if r.start, err = buildRaced(ctx, r.folder); err != nil {
				return cells.report, err
			}
		}
		promised := verdict.Holds
		if ours {
			promised = entry.Promised(promise.Rush, r.engine.Database)
		}
		for _, f := range c.Faults {
			start := time.Now()
			cell, err := r.cell(s.Name, f, promised)
			cell.DurationMS = time.Since(start).Milliseconds()
			if _, err := cells.add(ctx, start, cell, err); err != nil {
				return cells.report, err
			}
		}
	}
	cells.report.Finish()
	return cells.report, nil
}

// raceRun is a run with the race detector. Each cell has processes of its own.
type raceRun struct {
	ctx    context.Context
	folder string
	engine *engine.Engine
	start  func(addr string) *exec.Cmd // starts a shop with the race detector
	shops  int                         // number of started shops
}

// cell plays one cell.
func (r *raceRun) cell(strategy string, f promise.Condition, promised verdict.Verdict) (cell verify.Cell, err error) {
	cell = verify.Cell{Strategy: strategy, Fault: f, Promise: promised}
	auditor, replay := rush.Database{DB: r.engine.DB}, fmt.Sprintf("shop verify --race --strategy %s --fault %s", strategy, f)
	var report string
	if f == promise.FirstUse {
		report, err = r.firstUse(strategy, auditor, &cell)
	} else {
		report, err = r.shop(func(url string) error {
			shelf := rush.Target{BaseURL: url}
			result, err := rush.Run(r.ctx, verify.RushConfig([]string{url}, shelf, auditor, strategy, fault.Times{Wait: RaceWait, Lease: RaceWait}))
			cell = verify.RushCell(strategy, f, promised, engine.Embedded, result, 1)
			return err
		})
	}
	cell.Replay = replay
	cell.Settle()
	if cell.Race(report); cell.Verdict == verdict.Raced {
		err = nil // a race may end the shop
	}
	return cell, err
}

// firstUse plays the burst of a first use in one new process after the other, until a race is
// reported or a product breaks. report is the last race report.
func (r *raceRun) firstUse(strategy string, auditor rush.Auditor, cell *verify.Cell) (report string, err error) {
	crowd := verify.FirstUse{Strategy: strategy, Auditor: auditor, Shelve: r.shelve, Timeout: RaceWait + 30*time.Second}
	for round := 0; round < firstUses && err == nil && (round == 0 || cell.Verdict == verdict.Holds || cell.Verdict == verdict.Inconclusive); round++ {
		report, err = r.shop(func(url string) error {
			crowd.URL = url
			return crowd.Play(r.ctx, round, cell)
		})
		cell.Race(report)
	}
	return report, err
}

// shelve puts a product on sale directly in the database, since the shop under test must not know
// it yet.
func (r *raceRun) shelve(ctx context.Context, name string, units int64) error {
	return purchase.InLockingTx(ctx, r.engine.Admin, func(tx *gorm.DB) error { return product.Put(tx, name, units) })
}

// shop starts a shop with the race detector, lets play use it, ends it, and returns the output of
// the race detector and the runtime.
func (r *raceRun) shop(play func(url string) error) (report string, err error) {
	group, err := localserver.NewGroup()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, group.Close()) }()
	r.shops++
	log := filepath.Join(r.folder, fmt.Sprintf("race-%d", r.shops))
	said, err := os.Create(log)
	if err != nil {
		return "", err
	}
	defer said.Close()
	command := func(addr string) *exec.Cmd {
		child := r.start(addr)
		child.Env = append(child.Env, "GORACE=halt_on_error=0 exitcode=0 atexit_sleep_ms=0 log_path="+log)
		child.Stderr = said
		return child
	}
	shop, err := testbed.StartShop(r.ctx, group, r.engine.URLs, command, nil)
	if err == nil {
		err = errors.Join(play(shop.URL()), shop.Stop(web.ShutdownTimeout+time.Second))
	}
	files, _ := filepath.Glob(log + "*") // the detector appends its process id
	for _, file := range files {
		text, failed := os.ReadFile(file)
		err = errors.Join(err, failed)
		report += string(text)
	}
	if err != nil && report != "" {
		err = fmt.Errorf("%w; the shop wrote: %.500s", err, report)
	}
	return report, err
}

// RaceFlags returns the build flags for the race detector. They exclude SQLite and its C library,
// whose memory neither the detector nor checkptr observes. tools/test.sh has the same flags, so
// that a package is compiled once.
func RaceFlags() []string {
	return []string{
		"-race",
		"-gcflags=modernc.org/sqlite/lib=-race=false -d=checkptr=0",
		"-gcflags=modernc.org/libc=-race=false -d=checkptr=0",
	}
}

// buildRaced builds this program with the race detector, from the sources in the current folder.
func buildRaced(ctx context.Context, folder string) (start func(addr string) *exec.Cmd, _ error) {
	const needs = "--race builds the shop with the race detector, in a checkout of the project, with Go, cgo and a C compiler: "
	if _, err := exec.LookPath("go"); err != nil {
		return nil, errors.New(needs + "there is no go in PATH, see https://go.dev/dl")
	}
	module := "github.com/oversell/oversell"
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Path != "" {
		module = build.Main.Path
	}
	binary := filepath.Join(folder, "shop-raced")
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", binary}, RaceFlags(), []string{module + "/cmd/shop"})...)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.New(needs + firstWords(string(out), err))
	}
	return testbed.Command{Program: binary, LogLevel: "error", Wait: RaceWait, Lease: RaceWait, Gather: verify.FirstUseBuyers}.At, nil
}

// firstWords returns the first informative line of a build's output.
func firstWords(out string, err error) string {
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "# ") && !strings.HasPrefix(line, "go: downloading") {
			return line
		}
	}
	return err.Error()
}
