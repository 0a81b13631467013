// Package scan finds out which requests of a program race. It needs no rules from the user. It explores
// the program with each pair of requests, including two of the same request.
//
//	each request alone -> Footprint -> pairs: left out if they cannot conflict, the most suspicious first
//	each pair          -> a search, compared with the serial orders of the two buyers -> Report
package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/explore/program"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Config is the configuration of a scan.
type Config struct {
	Search   explore.Config                   // configures the search of each pair, except for its Budget
	Budget   time.Duration                    // time for all requests and pairs, without the program's start
	Save     string                           // folder for a file and a replay of each broken pair; "": none
	Command  func(file, replay string) string // returns the command that shows a saved replay
	Progress func(format string, args ...any)
	Found    func(p Pair, after time.Duration) // called for each pair that races, with the time since Run began; nil: no call
}

const firstBudget = 15 * time.Second

// A scan is the state of one call of Run.
type scan struct {
	Config
	app    *app.App
	opened *program.Program // nil until the program is open
	begun  time.Time
	until  time.Time // end of the budget; set when the program is ready
	saved  []string  // folders in Save
	failed error     // the first error of the method `save`
	report Report
}

// Run scans the program's requests. The error is one line. After an error, or if ctx ends, the report
// contains the pairs so far. If Run cannot save a race, it continues, and returns the error at the end.
func Run(ctx context.Context, a *app.App, c Config) (_ Report, err error) {
	requests := a.Requests
	if len(requests) == 0 {
		requests = distinct(a.Buyers)
	}
	if len(requests) == 0 {
		return Report{}, errors.New("there are no requests: list them under `requests:` of the file, or give --openapi, --har or --curl")
	}
	s := &scan{Config: c, app: a, begun: time.Now(), report: Report{Program: a.Name, BudgetSeconds: c.Budget.Seconds()}}
	for _, r := range requests {
		s.report.Requests = append(s.report.Requests, Request{Name: s.name(r), Line: r.Method + " " + r.URL, request: r})
	}
	defer func() {
		if err = errors.Join(err, s.failed, s.close()); err != nil {
			err = line{err}
		}
	}()
	if err = s.send(ctx, requests[0]); err == nil {
		s.until = time.Now().Add(c.Budget)
		err = s.alone(ctx)
	}
	if err == nil {
		s.report.Pairs = pairs(s.report.Requests)
		err = s.search(ctx)
	}
	s.report.Seconds = time.Since(s.begun).Seconds()
	return s.report, err
}

// A line is an error whose text is one line, even if several errors are joined.
type line struct{ error }

func (l line) Error() string { return strings.ReplaceAll(l.error.Error(), "\n", "; ") }

func (l line) Unwrap() error { return l.error }

func distinct(all []app.Request) (some []app.Request) {
	for _, r := range all {
		if !slices.ContainsFunc(some, func(other app.Request) bool { return fmt.Sprint(r) == fmt.Sprint(other) }) {
			some = append(some, r)
		}
	}
	return some
}

// name returns a name for a request that no other request has: "POST /buy".
func (s *scan) name(r app.Request) string {
	path := r.URL
	if u, err := url.Parse(r.URL); err == nil {
		path = strings.TrimPrefix(r.URL, u.Scheme+"://"+u.Host)
	}
	first := cmp.Or(r.Named, r.Method+" "+path)
	name := first
	for n := 2; slices.ContainsFunc(s.report.Requests, func(other Request) bool { return other.Name == name }); n++ {
		name = fmt.Sprintf("%s (%d)", first, n)
	}
	return name
}

// send sets the program's buyers. It opens the program if it is not open, or opens it again if the
// running one cannot continue.
func (s *scan) send(ctx context.Context, buyers ...app.Request) error {
	if s.opened != nil {
		err := s.opened.Send(ctx, buyers...)
		if err == nil || ctx.Err() != nil || s.app.Attach != nil {
			return err
		}
		if err := s.close(); err != nil {
			return err
		}
	}
	s.app.Buyers = slices.Repeat(buyers[:1], 2) // start an instance for each of two buyers
	opened, err := program.Open(ctx, s.app, s.Search)
	if err != nil {
		return err
	}
	s.opened = opened
	return opened.Send(ctx, buyers...)
}

func (s *scan) close() error {
	if s.opened == nil {
		return nil
	}
	defer func() { s.opened = nil }()
	return s.opened.Close()
}

// alone runs each request alone. It returns an error if the program cannot be explored with any of
// them.
func (s *scan) alone(ctx context.Context) error {
	half := s.until.Add(-s.Budget / 2) // the other half of the budget is for the pairs
	for i := range s.report.Requests {
		r := &s.report.Requests[i]
		s.Progress("%s: request %d of %d alone, %s", s.app.Name, i+1, len(s.report.Requests), r.Name)
		if r.NotRun = time.Now().After(half); r.NotRun {
			continue
		}
		if err := s.send(ctx, r.request); err != nil {
			return err
		}
		seen, err := s.opened.Runner.Check(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.Problem = line{err}.Error()
			s.opened.Runner.Anew()
		default:
			if err := r.learn(ctx, s.opened.Runner, seen); err != nil {
				return err
			}
		}
		s.report.Servers = cmp.Or(seen.Servers, s.report.Servers)
	}
	all := s.report.Requests
	first := slices.IndexFunc(all, func(r Request) bool { return r.Problem != "" })
	switch {
	case slices.ContainsFunc(all, func(r Request) bool { return r.usable && !r.uses.Empty() }):
		return nil
	case slices.ContainsFunc(all, func(r Request) bool { return r.NotRun }): // the report says so
		return nil
	case first < 0:
		return errors.New("no request sends a command to a gate: the program goes around the gates (a unix socket, another address or port), or needs no server; shop explore --app-check shows all commands")
	}
	return fmt.Errorf("no request can be explored; %s: %s", all[first].Name, all[first].Problem)
}

func (r *Request) learn(ctx context.Context, x *target.Runner, seen target.Check) (err error) {
	a := seen.Buyers[0]
	r.Answer, r.Commands = a.Answer, len(a.Commands)
	switch err := seen.Err(); {
	case a.Why != "" || a.Hides != "":
		r.Problem = strings.TrimPrefix(err.Error(), "buyer 1 alone: ")
		return nil
	case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
		r.Problem = fmt.Sprintf("it needs a login, since it is answered %s: add the login to `before`, and what it hands on to this request, for example header: { Authorization: Bearer {{login.token}} }", a.Answer)
		return nil
	case a.Status >= http.StatusBadRequest:
		r.Problem = fmt.Sprintf("alone it is answered %s, so what it uses otherwise is not known: correct the request, or have `reset` or `before` make what it needs", a.Answer)
		r.refused = true
	}
	r.usable, r.ignored = true, x.Ignored(a)
	if r.uses, err = x.Footprint(ctx, a); err == nil {
		r.Reads, r.Writes = texts(slices.Concat(r.uses.Reads, r.uses.Locks)), texts(r.uses.Writes)
	}
	return err
}

func texts(all []target.Resource) []string {
	words := []string{}
	for _, r := range all {
		words = append(words, r.String())
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// search explores the pairs that can conflict, the most suspicious first, until the budget ends. Each
// pair first gets a short search, so that a large pair does not use the time of the others.
func (s *scan) search(ctx context.Context) error {
	var wanted []*Pair
	for i := range s.report.Pairs {
		if p := &s.report.Pairs[i]; !p.LeftOut {
			p.NotRun = true
			p.inconclusive("it had no turn")
			wanted = append(wanted, p)
		}
	}
	if err := s.round(ctx, wanted, firstBudget); err != nil {
		return err
	}
	wanted = slices.DeleteFunc(wanted, func(p *Pair) bool { return p.Search == nil || p.Complete || p.Verdict != verdict.Inconclusive })
	return s.round(ctx, wanted, s.Budget)
}

// round explores pairs. Each gets an equal share of the remaining time, at least firstBudget, and at
// most the given time.
func (s *scan) round(ctx context.Context, wanted []*Pair, most time.Duration) error {
	for n, p := range wanted {
		left := time.Until(s.until)
		if left <= 0 {
			return nil
		}
		p.NotRun = false
		s.Progress("%s: pair %d of %d, %s", s.app.Name, n+1, len(wanted), p.Name())
		err := s.explore(ctx, p, min(most, max(left/time.Duration(len(wanted)-n), firstBudget)))
		switch {
		case p.Races() && s.Found != nil:
			s.Found(*p, time.Since(s.begun))
		case ctx.Err() != nil:
			p.inconclusive("it was interrupted")
		case err != nil:
			p.inconclusive(line{err}.Error())
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && s.opened == nil:
			return err
		case err != nil:
			s.opened.Runner.Anew()
		}
	}
	return nil
}

func (s *scan) explore(ctx context.Context, p *Pair, budget time.Duration) error {
	begun := time.Now()
	defer func() { p.Seconds += time.Since(begun).Seconds() }()
	buyers := []app.Request{s.report.Requests[p.of[0]].request, s.report.Requests[p.of[1]].request}
	if err := s.send(ctx, buyers...); err != nil {
		return err
	}
	seen, err := s.opened.Runner.Check(ctx)
	if err == nil {
		err = seen.Err()
	}
	if err != nil {
		return err
	}
	config := s.Search
	config.Budget = max(min(budget, time.Until(s.until)), time.Second)
	x, err := s.opened.Explorer(&config, func(string, ...any) {})
	if err != nil {
		return err
	}
	r, err := program.Search(ctx, x, config)
	if err != nil {
		return err
	}
	p.Search, p.Schedules, p.Complete, p.Violations = &r, r.Explored, r.Complete, r.Violations
	switch missing := findings.First(r); {
	case r.Violations > 0:
		p.Verdict, p.Why = verdict.Broken, "without a witness"
		if r.Witness != nil {
			p.Verdict, p.Why = r.Witness.Verdict, r.Witness.Why
			s.failed = cmp.Or(s.failed, s.save(p, x, buyers, seen.Unmatched))
		}
	case missing != nil && missing.Name == findings.OneSchedule && r.Explored == 1:
		p.LeftOut, p.Verdict, p.Why = true, "", "they use different rows of what they share"
	case missing != nil:
		p.inconclusive(strings.TrimPrefix(findings.Unproven(r), r.Strategy+": "))
	default:
		p.Verdict = verdict.Holds
	}
	return nil
}
