package exercise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/exercises/judge"
	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/teach/childlog"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// judgeWithin is the time limit of the child process that judges the code. The child limits each of its
// checks itself. It is killed only if that fails.
const judgeWithin = 6 * time.Minute

// A Result is the result of a check.
type Result struct {
	judge.Judgement
	PerSecond      float64 `json:"per_second"`       // sales per second of the rush (burst of buyers) on the learner's code; 0: no rush
	TheirPerSecond float64 `json:"their_per_second"` // sales per second of the reference solution in the same run
}

// A judged is a compiled judge, and the source that it judges.
type judged struct {
	program  string
	exercise exercises.Exercise
	source   string
	pkg      string // import path
	dir      string // folder of the package
}

// orders runs the judge, which tries every schedule (order of commands), in a child process and returns its
// checks.
func (j judged) orders(ctx context.Context) (r judge.Judgement, err error) {
	shared, err := packageMemory(j.dir)
	if err != nil {
		return r, err
	}
	if shared != nil {
		return judge.Judgement{Checks: []judge.Check{*shared}}, nil
	}
	group, err := localserver.NewGroup()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, group.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, judgeWithin)
	defer cancel()
	out, said := &childlog.Log{Most: mostSaid}, &childlog.Log{Most: mostSaid}
	cmd := exec.Command(j.program, "judge", j.exercise.Folder, j.source)
	cmd.Stdout, cmd.Stderr = out, said
	child, err := group.Start(cmd)
	if err != nil {
		return r, err
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		_ = child.Kill()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return failed(fmt.Sprintf("the code does not come to an end within %s", judgeWithin)), nil
		}
		return r, context.Cause(ctx)
	}
	if json.Unmarshal([]byte(out.String()), &r) == nil && len(r.Checks) > 0 {
		return r, nil
	}
	return failed(ending(said.String(), j.pkg)), nil
}

// failed returns a report about code that has ended its own process.
func failed(why string) judge.Judgement {
	return judge.Judgement{Checks: []judge.Check{{Name: "the code runs", Verdict: judge.Wrong, Why: why}}}
}

// ending says in one line, from the output `said` of a process, why the process has ended by itself.
func ending(said, pkg string) string {
	line := childlog.Fatal(said)
	if line == "" {
		return "the code ends the whole process, where Buy should return"
	}
	if place := judge.Place(said, pkg); place != "" {
		return line + ", at " + place
	}
	return line
}

// mostSaid is the number of bytes that are kept of a child's output.
const mostSaid = 1 << 20

const (
	crowdBuyers = 200
	crowdStock  = 100
	processes   = 2
)

// crowds sends a rush, a burst of buyers, to the learner's code. If the code keeps the stock right, it also
// sends one to the reference solution, to compare the speed.
func (j judged) crowds(ctx context.Context) (c judge.Check, own, theirs float64, err error) {
	c.Name = fmt.Sprintf("%d buyers at once for %d units, in two processes", crowdBuyers, crowdStock)
	r, said, err := j.crowd(ctx, j.source)
	if err != nil {
		return c, 0, 0, err
	}
	own = r.PerSecond
	c.Verdict, c.Why = judge.Passed, r.Reason
	switch {
	case strings.Contains(said, "panic: "), strings.Contains(said, "fatal error: "):
		c.Verdict, c.Why = judge.Wrong, ending(said, j.pkg)
	case r.Verdict == verdict.Inconclusive:
		c.Verdict, c.Why = judge.Unsure, r.Reason
	case r.Verdict != verdict.Holds:
		c.Verdict, c.Why = judge.Wrong, fmt.Sprintf("%s: %s", r.Verdict, r.Reason)
	}
	if c.Verdict != judge.Passed {
		if r.FirstError != "" {
			c.Why += "; the first answer that was no sale and no refusal: " + oneLine(r.FirstError)
		}
		return c, own, 0, nil
	}
	// The learner's code and the reference take turns, and the better of two rushes counts for each. Otherwise
	// a machine that is busy for a second would make one of them look slow.
	for _, of := range []struct {
		source string
		best   *float64
	}{{j.source + " reference", &theirs}, {j.source, &own}, {j.source + " reference", &theirs}} {
		if r, _, err = j.crowd(ctx, of.source); err != nil {
			return c, own, theirs, err
		}
		*of.best = max(*of.best, r.PerSecond)
	}
	return c, own, theirs, nil
}

// serve returns the command of a shop that sells with a source, the learner's code or the reference, on a
// port of its own.
func (j judged) serve(source string, wait, lease time.Duration) *exec.Cmd {
	return exec.Command(j.program, "serve", j.exercise.Folder, source, wait.String(), lease.String())
}

// crowd sends one rush to two shop processes that sell with the source.
func (j judged) crowd(ctx context.Context, source string) (r rush.Result, said string, err error) {
	wait, lease := 5*time.Second, 10*time.Second
	e, err := engine.Open(ctx, engine.Config{Name: engine.Embedded, Wait: wait, Lease: lease, Conns: 64})
	if err != nil {
		return r, "", err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	group, err := localserver.NewGroup()
	if err != nil {
		return r, "", err
	}
	defer func() { err = errors.Join(err, group.Close()) }()
	log := &childlog.Log{Most: mostSaid}
	config := rush.Config{
		Auditor: rush.Database{DB: e.Admin}, Strategy: kata.Name, Product: "apple", Stock: crowdStock, Buyers: crowdBuyers,
		Timeout: wait + 30*time.Second, Wait: wait, Lease: lease, Progress: func(int) {},
	}
	for range processes {
		command := func(string) *exec.Cmd {
			cmd := j.serve(source, wait, lease)
			cmd.Stderr = log
			return cmd
		}
		shop, err := testbed.StartShop(ctx, group, e.URLs, command, nil)
		if err != nil {
			return r, log.String(), err
		}
		config.BaseURLs = append(config.BaseURLs, shop.URL())
	}
	config.Shelf = rush.Target{BaseURL: config.BaseURLs[0]}
	r, err = verdict.Confirm(func() (rush.Result, error) {
		if j.exercise.Keyed {
			return rush.RunKeyed(ctx, config, nil)
		}
		return rush.Run(ctx, config)
	})
	if err != nil && ctx.Err() == nil { // a process that has ended does not answer
		r.Verdict, r.Reason, err = verdict.Broken, oneLine(err.Error()), nil
	}
	return r, log.String(), err
}

// check runs all checks, up to and including the first that does not pass.
func (j judged) check(ctx context.Context, told func(string)) (r Result, err error) {
	told("every order of a few buyers' commands")
	if r.Judgement, err = j.orders(ctx); err != nil || r.Last().Verdict == judge.Wrong || r.Last().Verdict == judge.Broken {
		return r, err
	}
	told("a crowd")
	c, own, theirs, err := j.crowds(ctx)
	if err != nil {
		return r, err
	}
	r.add(c)
	r.PerSecond, r.TheirPerSecond = own, theirs
	return r, nil
}

// add adds a check at the end, where it decides the result. But a passed check goes before an earlier unsure
// one, which then still decides.
func (r *Result) add(c judge.Check) {
	if n := len(r.Checks); n > 0 && r.Last().Verdict == judge.Unsure && c.Verdict == judge.Passed {
		r.Checks = append(r.Checks[:n-1], c, r.Last())
		return
	}
	r.Checks = append(r.Checks, c)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
