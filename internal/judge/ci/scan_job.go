package ci

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/explore/scan"
	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// scan explores pairs of the program's requests. It returns one check for each explored pair, and one for
// everything that was not explored.
func (j *appJob) scan(ctx context.Context) (checks []result.Check) {
	begun := time.Now()
	whole := j.check()
	whole.Line = j.app.App.Line("")
	r, err := scan.Run(ctx, j.app.App, scan.Config{
		Search: j.app.Search, Budget: j.app.Search.Budget, Save: j.Out, Progress: j.Progress,
		Command: func(file, replay string) string {
			return "shop explore --app " + trial.ShellWord(file) + j.app.Flags + " --replay " + trial.ShellWord(replay)
		},
	})
	d, failed := r.Document(whole.Command)
	if err == nil {
		err = failed
	}
	statuses := map[verdict.Verdict]result.Status{verdict.Holds: result.Holds, verdict.Inconclusive: result.Inconclusive}
	for _, p := range r.Pairs {
		if !p.Explored() || failed != nil {
			continue
		}
		c := whole
		c.Name += ": " + p.Name()
		c.Verdict, c.Why, c.Complete, c.Schedules, c.Violations = p.Verdict, p.Why, p.Complete, p.Schedules, p.Violations
		c.Status = statuses[p.Verdict]
		switch c.Case, d.Cases = d.Cases[0], d.Cases[1:]; c.Status {
		case "":
			c.Status = result.Broken
			if w := p.Search.Witness; w != nil {
				c.Witness = &result.BreakingSchedule{Replay: w.Schedule, Command: p.Replay, Steps: w.Steps, Rules: rules(w)}
			}
		case result.Holds:
			c.Why = p.Search.Extent() + ", none breaks"
		}
		j.Baseline.Compare(&c, result.Replay{How: "the pair was explored anew"})
		c = attempted(c, begun)
		c.Seconds, c.Attempts[0].Seconds = p.Seconds, p.Seconds
		checks = append(checks, c)
	}
	why := r.Unproven()
	switch {
	case err != nil && ctx.Err() == nil:
		whole.Status, whole.Why = result.Error, oneLine(err)
	case why != "" || ctx.Err() != nil:
		whole.Status, whole.Verdict, whole.Why = result.Inconclusive, verdict.Inconclusive, why
		if ctx.Err() != nil {
			whole.Why = "it was interrupted"
		}
	default:
		return checks
	}
	return append(checks, attempted(whole, begun))
}
