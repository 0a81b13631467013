// Package ci runs the checks of `shop ci`. It searches every schedule (order of the steps of concurrent
// requests) of each program, and tests a running service. It repeats inconclusive checks, and compares the
// result with another branch.
//
//	Config -> Run -> result.Result -> format: files
//	                               -> system: GitHub, GitLab, Buildkite
package ci

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/program"
	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/plural"
)

// A Config says what to check.
type Config struct {
	Apps   []App
	Target *Target // running service to test; may be nil
	Shard  Shard   // the part of the checks to run; the zero value means all
	Strict bool    // a break fails the run even if it is in the baseline

	Baseline *result.Baseline // result of another branch; may be nil
	Out      string           // folder of the replay files, as it appears in the printed commands
	Cache    string           // folder of earlier results; "": none
	Root     string           // folder of the repository, to which files are relative
	Shop     string           // version of this program

	Ended    func(result.Check)               // called as each check ends
	Progress func(format string, args ...any) // called while a check runs
	Warn     func(format string, args ...any) // called for a warning; the run continues
}

// An App is a program to search.
type App struct {
	Path   string // path as the user typed it
	App    *app.App
	Scan   bool // explore pairs of its requests (shop scan) instead of buyers
	Search explore.Config
	Flags  string // flags of the search, also used to replay a schedule, with a leading space; "" if there are none

	ScanFlags string // flags of shop scan, with a leading space
}

// A Target is a running service to test.
type Target struct {
	Service verify.Service
	Faults  []promise.Condition
	Flags   string // further flags of shop verify, besides --target, --strategy and --fault, with a leading space
}

// A job is one unit of work, which yields one or more checks.
type job interface {
	name() string // the same in every run
	run(ctx context.Context) []result.Check
}

// Run runs the checks of the shard. It repeats an inconclusive check once. If ctx ends, the result contains
// the checks so far and says why it is unfinished.
func Run(ctx context.Context, c Config) result.Result {
	r := result.Result{Schema: result.Schema, Shop: c.Shop, Commit: head(ctx, c.Root), Started: time.Now(), Shard: c.Shard.String(), Strict: c.Strict, Baseline: c.Baseline, Checks: []result.Check{}}
	all := c.jobs()
	jobs := c.Shard.of(all)
	if len(jobs) == 0 {
		note := fmt.Sprintf("shard %s has no check: %s in all, in the shards before it", c.Shard, plural.Count(len(all), "check"))
		r.Notes = append(r.Notes, note)
		c.Warn("%s", note)
	}
	unavailable := error(nil)
	if len(c.Apps) > 0 {
		unavailable = program.Unavailable()
	}
	c.runAll(ctx, &r, jobs, unavailable)
	if c.Shard.Count <= 1 && ctx.Err() == nil {
		c.Baseline.Missing(r.Checks)
	}
	if ctx.Err() != nil {
		r.Unfinished = "it was interrupted"
	}
	r.Finish()
	return r
}

// runAll runs each job once. Then it repeats each job with an inconclusive check. `unavailable` is the reason
// why no program can run, or nil.
func (c Config) runAll(ctx context.Context, r *result.Result, jobs []job, unavailable error) {
	owner := map[int]job{} // the job of each check, by the index in r.Checks
	for _, j := range jobs {
		if ctx.Err() != nil {
			break
		}
		for _, check := range c.first(ctx, j, unavailable) {
			owner[len(r.Checks)] = j
			r.Checks = append(r.Checks, check)
			c.Ended(check)
		}
	}
	for i := range r.Checks {
		if r.Checks[i].Status == result.Inconclusive && ctx.Err() == nil {
			r.Checks[i] = c.again(ctx, owner[i], r.Checks[i])
			c.Ended(r.Checks[i])
		}
	}
}

// jobs returns the work in an order that is the same in every run.
func (c Config) jobs() (jobs []job) {
	for _, a := range c.Apps {
		jobs = append(jobs, &appJob{c, a})
	}
	if c.Target == nil {
		return jobs
	}
	for _, s := range c.Target.Service.Strategies {
		for _, f := range c.Target.Faults {
			jobs = append(jobs, &targetJob{c, s, f})
		}
	}
	return jobs
}

// first runs a job, or returns its stored result.
func (c Config) first(ctx context.Context, j job, unavailable error) []result.Check {
	a, isApp := j.(*appJob)
	if !isApp {
		return j.run(ctx)
	}
	if unavailable != nil {
		return []result.Check{a.failed(unavailable)}
	}
	fingerprint := a.fingerprint(ctx)
	if kept := c.kept(fingerprint, a); kept != nil {
		return []result.Check{*kept}
	}
	checks := j.run(ctx)
	for i := range checks {
		checks[i].Fingerprint = fingerprint
		c.keep(ctx, checks[i])
	}
	return checks
}

// again repeats one inconclusive check. The second attempt is the result, even if it is inconclusive too.
func (c Config) again(ctx context.Context, j job, first result.Check) result.Check {
	if a, is := j.(*appJob); is && a.app.Scan { // a scan would run all of its pairs again
		return first
	}
	if t, is := j.(*targetJob); is {
		j = &targetJob{t.Config, first.Strategy, first.Fault}
	}
	checks := j.run(ctx)
	if len(checks) != 1 || ctx.Err() != nil {
		return first
	}
	second := checks[0]
	second.Fingerprint = first.Fingerprint
	second.Attempts = append(first.Attempts, second.Attempts...)
	second.Seconds += first.Seconds
	c.keep(ctx, second)
	return second
}

// attempted completes a check that has run once. `begun` is when the check began.
func attempted(c result.Check, begun time.Time) result.Check {
	c.Seconds = time.Since(begun).Seconds()
	c.Attempts = []result.Attempt{{Status: c.Status, Verdict: c.Verdict, Why: c.Why, Complete: c.Complete, Schedules: c.Schedules, Seconds: c.Seconds}}
	return c
}

// relative returns a path relative to a folder, with slashes. A path outside the folder stays as it is. If the
// path itself is a symbolic link, relative does not follow it.
func relative(folder, path string) string {
	whole, err := filepath.Abs(path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(whole)); err == nil {
		whole = filepath.Join(real, filepath.Base(whole))
	}
	inside, err := filepath.Rel(folder, whole)
	if err != nil || inside == ".." || strings.HasPrefix(inside, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(inside)
}

func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
