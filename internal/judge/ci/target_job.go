package ci

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
)

// A targetJob tests a running service in one situation, such as a fault: one strategy, or all that the service
// lists.
type targetJob struct {
	Config
	strategy string // name, or "all"
	fault    promise.Condition
}

func (j *targetJob) name() string { return fmt.Sprintf("%s under %s", j.strategy, j.fault) }

func (j *targetJob) run(ctx context.Context) (checks []result.Check) {
	begun := time.Now()
	service := j.Target.Service
	service.Strategies = []string{j.strategy}
	r, err := verify.Config{
		Faults: []promise.Condition{j.fault}, Progress: j.Progress, Ended: func(verify.Cell, verify.Report) {},
		Warn: func(text string) { j.Warn("%s", text) },
	}.At(ctx, service)
	for _, cell := range r.Cells {
		c := attempted(j.check(r, cell), begun)
		c.Seconds = float64(cell.DurationMS) / 1000
		c.Attempts[0].Seconds = c.Seconds
		j.Baseline.Compare(&c, result.Replay{How: "bursts have no schedule to replay"})
		checks = append(checks, c)
	}
	if err != nil && ctx.Err() == nil {
		c := result.Check{Name: j.name(), Kind: result.Verify, Strategy: j.strategy, Fault: j.fault, Status: result.Error, Why: oneLine(err), Command: j.command(j.strategy)}
		checks = append(checks, attempted(c, begun))
	}
	return checks
}

// command returns the command that repeats a check. It quotes the strategy's name, since the service chooses
// that name.
func (j *targetJob) command(strategy string) string {
	return fmt.Sprintf("shop verify --target %s --strategy %s --fault %s%s", trial.ShellWord(j.Target.Service.URL), trial.ShellWord(strategy), j.fault, j.Target.Flags)
}

func (j *targetJob) check(r verify.Report, cell verify.Cell) result.Check {
	c := result.Check{
		Name: fmt.Sprintf("%s under %s", cell.Strategy, cell.Fault), Kind: result.Verify, Strategy: cell.Strategy, Fault: cell.Fault,
		Promise: cell.Promise, Verdict: cell.Verdict, Why: cell.Evidence, Complete: true, Command: j.command(cell.Strategy),
	}
	switch {
	case cell.HarnessError != "":
		c.Status, c.Why = result.Error, cell.HarnessError
	case cell.Verdict == verdict.Inconclusive:
		c.Status, c.Complete = result.Inconclusive, false
	case cell.OK:
		c.Status = result.Holds
	default:
		c.Status = result.Broken
	}
	r.Cells = []verify.Cell{cell}
	c.Case = r.Document("shop verify").Cases[0]
	return c
}
