package exercise

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/oversell/oversell/exercises/judge"
	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// underFaults injects the exercise's faults on private servers, as `shop verify` does. It stops after the
// first fault that breaks the code.
func (j judged) underFaults(ctx context.Context, r Result, told func(string)) (Result, error) {
	needs := []lockstrategy.Need{}
	if j.exercise.Redis {
		needs = append(needs, lockstrategy.NeedsRedis)
	}
	if j.exercise.Second {
		needs = append(needs, lockstrategy.NeedsRedlock)
	}
	var faults []promise.Condition
	for _, name := range j.exercise.Faults {
		faults = append(faults, promise.Condition(name))
	}
	report, err := verify.Config{
		Strategies: []verify.Strategy{{
			Subject:  fault.Subject{Name: kata.Name, Needs: needs},
			Promised: func(promise.Condition) verdict.Verdict { return verdict.Holds },
		}},
		Faults: faults, Redlock: engine.RedlockNodes, Lanes: 1,
		Ended:    func(verify.Cell, verify.Report) {},
		Progress: func(format string, args ...any) { told("faults on private servers, " + fmt.Sprintf(format, args...)) },
		Launch: func(t fault.Times) *exec.Cmd {
			cmd := j.serve(j.source, t.Wait, t.Lease)
			cmd.Args = append(cmd.Args, "failpoints")
			return cmd
		},
	}.Local(ctx)
	if err != nil {
		return r, err
	}
	for _, cell := range report.Cells {
		c := judge.Check{Name: fmt.Sprintf("%s, on private servers", cell.Fault), Verdict: judge.Passed, Why: cell.Evidence}
		switch {
		case cell.HarnessError != "":
			c.Verdict, c.Why = judge.Broken, cell.HarnessError
		case cell.Verdict == verdict.Inconclusive:
			c.Verdict, c.Why = judge.Unsure, cell.Reason
		case cell.Verdict != verdict.Holds:
			c.Verdict, c.Why = judge.Wrong, fmt.Sprintf("%s: %s", cell.Verdict, cell.Reason)
		}
		if r.add(c); c.Verdict == judge.Wrong || c.Verdict == judge.Broken {
			break
		}
	}
	return r, nil
}
