package matrix

import (
	"cmp"
	"context"
	"os/exec"
	"slices"
	"strconv"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verify"
)

// Local plays all cells on private servers. The caller sets in run how the cells under
// faults are played: their servers, shops, lanes and histories. Without Times, the shops have
// fault.DefaultTimes.
func (c Config) Local(ctx context.Context, run verify.Config) (verify.Report, error) {
	explored := c.start(engine.Local)
	explored.report.Redis = run.LocalRedis
	if why := explore.UngatedRedis(run.LocalRedis); why != "" {
		explored.report.LeaveOut(why)
	} else if err := explored.explorations(ctx, engine.Config{Name: engine.Local, LocalDB: run.LocalDB, LocalRedis: run.LocalRedis}); err != nil {
		explored.report.Finish()
		return explored.report, err
	}
	run.Strategies, run.Times, run.Before = c.Strategies, cmp.Or(run.Times, fault.DefaultTimes()), explored.report
	run.Faults = slices.DeleteFunc(slices.Clone(c.Faults), func(f promise.Condition) bool { return slices.Contains(promise.Explorations(), f) })
	run.Launch, run.ShopFlags = with(waiting(run.Launch, run.RedisWait), c.shopFlags()), c.shopFlags()
	run.Progress = func(done, all int, last verify.Cell, sofar verify.Report) {
		c.Ended(last, sofar)
		c.Progress("%d of %s, %d left", done, witness.Count(all, "cell"), all-done)
	}
	return verify.Run(ctx, run)
}

// with returns launch with flags appended to each shop's command line.
func with(launch fault.Launch, flags []string) fault.Launch {
	return func(times fault.Times) *exec.Cmd {
		cmd := launch(times)
		cmd.Args = append(cmd.Args, flags...)
		return cmd
	}
}

// waiting launches shops whose locks wait for replicas.
func waiting(launch fault.Launch, replicas int) fault.Launch {
	if replicas == 0 {
		return launch
	}
	return func(times fault.Times) *exec.Cmd {
		cmd := launch(times)
		cmd.Args = append(cmd.Args, "--redis-wait", strconv.Itoa(replicas))
		return cmd
	}
}
