// Package judge checks a learner's code against its exercise. It is linked with that code into a separate
// program, which `shop exercise check` builds, runs and limits. So a panic or an endless loop ends only that
// program.
//
//	alone    one buyer after the other, without competitors: stock, records, other rows
//	drill    order of service, or buyers per transaction, if the exercise limits them
//	search   every schedule of a few buyers' commands, by internal/explore
//	serve    a shop for a rush over HTTP, and for faults; its caller sends them
//
// The result is a Judgement. A finding, the reason for a failed check, is one sentence for people. It never
// says how to fix the code.
package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// New is the constructor in each exercise's code.
type New = func(kata.Kit) kata.Strategy

// The results of a check.
const (
	Passed = "passed"
	Wrong  = "wrong"
	Unsure = "unsure" // no error was found, but the check was incomplete
	Broken = "broken" // the judge itself failed
)

// A Judgement contains the checks up to the first that did not pass.
type Judgement struct {
	Checks []Check `json:"checks"`
	Trips  float64 `json:"trips"` // commands of one buyer without competitors, to all servers
	Theirs float64 `json:"theirs"`
}

// A Check is the result of one check.
type Check struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Why     string `json:"why"`               // one sentence
	Story   string `json:"story,omitempty"`   // the relevant steps, one a line
	Diagram string `json:"diagram,omitempty"` // all steps
	Mermaid string `json:"mermaid,omitempty"`
}

// Last returns the last check, whose verdict is that of the whole judgement.
func (r Judgement) Last() Check {
	if len(r.Checks) == 0 {
		return Check{Verdict: Broken, Why: "nothing was checked"}
	}
	return r.Checks[len(r.Checks)-1]
}

type wrong struct{ text string }

func (w *wrong) Error() string { return w.text }

func wrongf(format string, args ...any) error { return &wrong{fmt.Sprintf(format, args...)} }

type unsure struct{ text string }

func (u *unsure) Error() string { return u.text }

// A subject is the learner's code and its exercise. It decides which checks to run.
type subject struct {
	code
	exercise exercises.Exercise
	settings times
}

// Main runs the whole program. Its arguments name the exercise, the task, and the code.
//
//	PROGRAM judge EXERCISE NAME
//	PROGRAM serve EXERCISE NAME WAIT LEASE
//
// The parameter `sources` has the constructors by name. "reference" is the reference solution, to compare with.
func Main(sources map[string]New) {
	out := os.Stdout
	os.Stdout = os.Stderr // the output of the learner's code must not mix with the report
	code, err := run(os.Args[1:], sources, out)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(args []string, sources map[string]New, out io.Writer) (int, error) {
	if len(args) < 3 {
		return 2, errors.New("this program is run by shop exercise check")
	}
	e, err := exercises.Find(args[1])
	if err != nil {
		return 2, err
	}
	build, known := sources[args[2]]
	if !known {
		return 2, fmt.Errorf("no source %s is linked", args[2])
	}
	boundMemory()
	quiet()
	s := &subject{code: newCode(build), exercise: e, settings: defaultTimes()}
	ctx := context.Background()
	if args[0] == "serve" {
		return s.serve(ctx, args[3:], out)
	}
	r := s.judge(ctx, sources[args[2]+" reference"])
	return 0, json.NewEncoder(out).Encode(r)
}

// judge runs the checks, up to the first that does not pass.
func (s *subject) judge(ctx context.Context, reference New) (r Judgement) {
	type check struct {
		name string
		run  func(context.Context) (Check, error)
	}
	checks := []check{{"one buyer after the other", s.alone}}
	if s.exercise.Line {
		checks = append(checks, check{"buyers are served in order of arrival", s.line})
	}
	if s.exercise.Group > 0 {
		checks = append(checks, check{"buyers share transactions", s.group})
	}
	for _, search := range s.exercise.Searches {
		checks = append(checks, check{search.Name(), func(ctx context.Context) (Check, error) { return s.search(ctx, search) }})
	}
	for _, c := range checks {
		done, err := c.run(ctx)
		done.Name = c.name
		if r.Checks = append(r.Checks, s.verdict(done, err)); r.Last().Verdict != Passed {
			return r
		}
	}
	var err error
	if r.Trips, err = s.trips(ctx); err == nil && reference != nil {
		other := &subject{code: newCode(reference), exercise: s.exercise, settings: s.settings}
		r.Theirs, err = other.trips(ctx)
	}
	if err != nil {
		r.Checks = append(r.Checks, s.verdict(Check{Name: "the round trips of one buyer"}, err))
	}
	return r
}

func (c code) verdict(done Check, err error) Check {
	var wrong *wrong
	var unsure *unsure
	switch {
	case err == nil && done.Verdict == "":
		done.Verdict = Passed
	case err == nil:
	case errors.As(err, &wrong):
		done.Verdict, done.Why = Wrong, wrong.text
		if at := order(err); at != "" {
			done.Why += "; in the order " + at
		}
	case errors.As(err, &unsure):
		done.Verdict, done.Why = Unsure, unsure.text
	case errors.Is(err, schedule.ErrUnrepeated):
		done.Verdict, done.Why = Unsure, "the same order of commands did not run in the same way twice: the code decides by time or chance, or by memory that two processes would not share"
	case errors.Is(err, schedule.ErrHarness):
		done.Verdict, done.Why = Wrong, c.lostControl(err)
	default:
		done.Verdict, done.Why = Broken, oneLine(err.Error())
	}
	return done
}

// lostControl describes the action of the learner's code that the explorer cannot control. The explorer ended
// the search because of it.
func (c code) lostControl(err error) string {
	var moving schedule.Moving
	switch {
	case errors.Is(err, schedule.ErrGoroutine):
		return "a goroutine that Buy has begun does not end" + c.standing()
	case errors.As(err, &moving) && len(moving) > 0:
		return fmt.Sprintf("buyer %d does not come back%s", moving[0].Buyer, c.standing())
	case errors.Is(err, schedule.ErrNoReturn), errors.As(err, &moving):
		return "a buyer does not come back" + c.standing()
	case errors.Is(err, schedule.ErrTwoAtOnce):
		return "two commands of one buyer are under way at once, from two goroutines; here a buyer sends one after the other"
	case errors.Is(err, schedule.ErrUndescribed):
		return "the code sends an unknown Lua script: kit.DeleteIfMine is known; for your own script add the method Scripts, see kata.Scripted"
	}
	text := strings.TrimPrefix(oneLine(err.Error()), schedule.ErrHarness.Error()+": ")
	return "no other order can be tried, since the code did something else than before or than can be held: " + text
}

// order returns the schedule that an error of the explorer names.
func order(err error) string {
	_, tokens, _ := strings.Cut(err.Error(), "; schedule ")
	return tokens
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
