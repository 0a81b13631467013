package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/testbed"
)

// local plays all cells on servers of this command's own.
func (o *verifyOptions) local(c *cobra.Command, strategies []verify.Strategy, faults []promise.Condition, p *progress) (verify.Report, error) {
	kept, made, err := o.folder() // before a server is started
	if err != nil {
		return verify.Report{}, err
	}
	ended := o.ended(c, p)
	explored := &oneByOne{command: c, report: verify.Report{Engine: engine.Local, Started: time.Now()}, ended: ended}
	if why := explore.UngatedRedis(o.localRedis); why != "" {
		explored.report.LeaveOut(why)
	} else if err := explored.explorations(engine.Config{Name: engine.Local, LocalDB: o.localDB, LocalRedis: o.localRedis}, strategies, faults); err != nil {
		explored.report.Finish()
		return explored.report, err
	}
	faults = slices.DeleteFunc(faults, func(f promise.Condition) bool { return slices.Contains(promise.Explorations(), f) })
	report, err := verify.Run(c.Context(), verify.Config{
		Strategies: strategies, Faults: faults, Launch: o.waiting(), Times: fault.DefaultTimes(), History: kept, LocalDB: o.localDB, LocalRedis: o.localRedis, RedisWait: o.redisWait, Lanes: o.lanes, Repeat: o.repeat, Before: explored.report,
		Progress: func(done, all int, last verify.Cell, sofar verify.Report) {
			ended(last, sofar)
			p.show("%d of %s, %d left", done, explore.Count(all, "cell"), all-done)
		},
	})
	switch {
	case len(report.Cells) > 0:
		fmt.Fprintln(c.ErrOrStderr(), "histories: "+kept)
	case made: // what is in it is of cells that were begun
		err = errors.Join(err, os.RemoveAll(kept))
	}
	return report, err
}

// folder is where the histories go. made tells whether it was not there before.
func (o *verifyOptions) folder() (path string, made bool, err error) {
	if o.history == "" {
		path, err = os.MkdirTemp("", "shop-verify-")
		return path, true, err
	}
	_, err = os.Stat(o.history)
	made = errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(o.history, 0o755); err != nil {
		return "", false, fmt.Errorf("--history: %w", err)
	}
	f, err := os.CreateTemp(o.history, ".verify-")
	if err != nil {
		return "", false, fmt.Errorf("--history %s: no file can be made there: %w", o.history, errors.Unwrap(err))
	}
	return o.history, made, errors.Join(f.Close(), os.Remove(f.Name()))
}

// waiting launches shops whose locks wait for replicas.
func (o *verifyOptions) waiting() fault.Launch {
	if o.redisWait == 0 {
		return o.launch
	}
	return func(times fault.Times) *exec.Cmd {
		cmd := o.launch(times)
		cmd.Args = append(cmd.Args, "--redis-wait", strconv.Itoa(o.redisWait))
		return cmd
	}
}

// ownShop is this very program as a shop with failpoints.
func ownShop(times fault.Times) *exec.Cmd {
	return testbed.Command{LogLevel: "error", Wait: times.Wait, Lease: times.Lease, Failpoints: true}.At("127.0.0.1:0")
}
