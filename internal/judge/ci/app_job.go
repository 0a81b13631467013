package ci

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/explore/program"
	"github.com/oversell/oversell/internal/judge/ci/format"
	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/plural"
)

// An appJob searches every schedule (order of the steps of concurrent requests) of a program.
type appJob struct {
	Config
	app App
}

func (j *appJob) name() string { return relative(j.Root, j.app.Path) }

func (j *appJob) command() string {
	if j.app.Scan {
		return "shop scan --app " + trial.ShellWord(j.app.Path) + j.app.ScanFlags
	}
	return "shop explore --app " + trial.ShellWord(j.app.Path) + j.app.Flags
}

func (j *appJob) check() result.Check {
	c := result.Check{Name: j.name(), Kind: result.Explore, Command: j.command()}
	if filepath.IsLocal(c.Name) { // CI systems know no file outside of the repository
		c.File = c.Name
	}
	return c
}

// failed returns the check of a program that could not be searched.
func (j *appJob) failed(err error) result.Check {
	c := j.check()
	c.Status, c.Why, c.Line = result.Error, oneLine(err), j.app.App.Line("")
	c.Sources = j.sources(err.Error())
	return attempted(c, time.Now())
}

func (j *appJob) run(ctx context.Context) []result.Check {
	if j.app.Scan {
		return j.scan(ctx)
	}
	begun := time.Now()
	c, err := j.search(ctx)
	switch {
	case err != nil && c.Status == "":
		c = j.failed(err)
	case err != nil: // the verdict is valid; the error may come from a server that did not stop
		j.Warn("%s: %s", c.Name, oneLine(err))
	}
	if ctx.Err() != nil && c.Status != result.Broken {
		c.Status, c.Verdict, c.Why = result.Inconclusive, verdict.Inconclusive, "it was interrupted"
	}
	return []result.Check{attempted(c, begun)}
}

// search runs every schedule of the program. If none breaks, it also runs the schedule that broke in the baseline.
func (j *appJob) search(ctx context.Context) (c result.Check, err error) {
	c = j.check()
	config := j.app.Search
	opened, err := program.Open(ctx, j.app.App, config)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	x, err := opened.Begin(ctx, &config, j.Progress)
	if err != nil {
		return c, err
	}
	r, err := program.Search(ctx, x, config)
	if err != nil {
		return c, err
	}
	c.Complete, c.Schedules, c.Violations = r.Complete, r.Explored, r.Violations
	origin := findings.Origin{Subject: j.name(), Again: func(*explore.Witness) string { return j.replay() }}
	d, err := origin.Document(r)
	if err != nil {
		return c, err
	}
	c.Case = d.Cases[0]
	switch why := findings.Unproven(r); {
	case r.Violations > 0 && r.Witness == nil: // the search counted violations but could not show the shortest breaking schedule
		c.Status, c.Verdict, c.Line = result.Broken, verdict.Broken, j.app.App.Line("")
		c.Why = plural.Count(r.Violations, "violation") + ", without a witness"
	case r.Violations > 0:
		j.broken(ctx, &c, opened, x, r.Witness)
	case why != "":
		c.Status, c.Verdict, c.Why, c.Line = result.Inconclusive, verdict.Inconclusive, strings.TrimPrefix(why, r.Strategy+": "), j.app.App.Line("")
	default:
		c.Status, c.Verdict, c.Why = result.Holds, verdict.Holds, r.Extent()+", none breaks"
	}
	replay := result.Replay{}
	if c.Status != result.Broken {
		replay = j.replayOld(ctx, &c, opened, x)
	}
	j.Baseline.Compare(&c, replay)
	return c, nil
}

// broken completes the check of a program that a schedule breaks. It runs this schedule, the witness, once
// more to collect the program's output.
func (j *appJob) broken(ctx context.Context, c *result.Check, opened *program.Program, x *explore.Explorer, w *explore.Witness) {
	c.Status, c.Verdict, c.Why = result.Broken, w.Verdict, w.Why
	shown := result.BreakingSchedule{Replay: w.Schedule, Steps: w.Steps, Rules: rules(w)}
	if saved, err := x.Saved(w); err == nil {
		shown.Saved = saved
	}
	j.show(c, shown)
	opened.Runner.Printed() // discard the output so far
	if c.Witness.Saved != nil {
		if _, err := x.Again(ctx, c.Witness.Saved); err == nil {
			c.Witness.Printed = opened.Runner.Printed()
		}
	}
	c.Sources = j.sources(c.Witness.Printed)
}

func rules(w *explore.Witness) []string {
	all := []string{}
	for _, f := range w.Findings {
		all = append(all, f.Query)
	}
	return all
}

// show sets the witness of a check, with the file and the command of this run. A witness from the baseline
// still has the file and the command of another run, whose --out and flags may differ.
func (j *appJob) show(c *result.Check, w result.BreakingSchedule) {
	rule := ""
	if len(w.Rules) > 0 {
		rule = w.Rules[0]
	}
	c.Line = j.app.App.Line(rule)
	w.File, w.Command = "", j.command()+" --replay "+trial.ShellWord(w.Replay)
	if w.HasFile() {
		w.File, w.Command = replayName(j.name()), j.replay()
	}
	c.Witness = &w
}

// notInFiles matches characters that do not appear in the file name of a witness.
var notInFiles = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func replayName(check string) string {
	name := strings.TrimSuffix(check, filepath.Ext(check))
	return strings.Trim(notInFiles.ReplaceAllString(name, "-"), "-.") + format.WitnessEnding
}

func (j *appJob) replay() string {
	return j.command() + " --replay " + trial.ShellWord(filepath.Join(j.Out, replayName(j.name())))
}

// replayOld runs the baseline's breaking schedule if the program broke in the baseline and not in this search.
// If the schedule breaks again, the check is broken although the search did not find the schedule.
func (j *appJob) replayOld(ctx context.Context, c *result.Check, opened *program.Program, x *explore.Explorer) result.Replay {
	if !j.Baseline.Broke(c.Name) {
		return result.Replay{}
	}
	old := j.Baseline.Check(c.Name)
	if old.Witness == nil || old.Witness.Saved == nil {
		return result.Replay{How: "the baseline has no saved witness"}
	}
	for _, rule := range old.Witness.Rules {
		if !slices.Contains(j.app.App.Never, rule) {
			return result.Replay{How: "the broken rule is no longer in the file: " + rule}
		}
	}
	saved := *old.Witness.Saved
	saved.Program = j.app.Search.Program // the program's name may have changed
	if saved.Steps == nil {
		return result.Replay{How: "the baseline's witness has no steps"}
	}
	same, err := x.Again(ctx, &saved)
	switch {
	case err != nil:
		return result.Replay{How: oneLine(err)}
	case same.StillBreaks():
		c.Status, c.Verdict, c.Why = result.Broken, same.Witness.Verdict, "the baseline's witness "+same.String()
		j.show(c, *old.Witness)
		return result.Replay{}
	case same.NoLongerBreaks():
		return result.Replay{Holds: true, How: "the old witness no longer breaks, and the search is complete"}
	}
	w, matched, err := x.Resembling(ctx, &saved)
	switch {
	case err != nil:
		return result.Replay{How: oneLine(err)}
	case w.Broken():
		j.broken(ctx, c, opened, x, w)
		c.Why = "the baseline's witness with the new commands breaks: " + c.Why
		return result.Replay{}
	}
	return result.Replay{Holds: true, How: fmt.Sprintf("the old witness ran with the new commands (%d of its %d are unchanged) and no longer breaks, and the search is complete", matched, len(saved.Steps))}
}
