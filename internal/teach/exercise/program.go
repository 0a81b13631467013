package exercise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/exercises/judge"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/program"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/plural"
)

// programWithin is the time limit of each search of the schedules of a learner's program.
const programWithin = 2 * time.Minute

// checkProgram judges a program that is not written in Go. It controls the order of the program's commands at
// its connections to the servers.
func checkProgram(ctx context.Context, e exercises.Exercise, language, dir string, faults bool, told func(string)) (r Result, err error) {
	if faults {
		return r, errors.New("--engine local works only for Go; other languages always use private servers")
	}
	if _, err := os.Stat(filepath.Join(dir, "package.json")); err == nil {
		if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
			return r, fmt.Errorf("%s has no node_modules; run npm install there, once", dir)
		}
	}
	for _, search := range e.Languages[language].Searches {
		name := programSearch(search)
		told(name)
		check, trips, err := searchProgram(ctx, filepath.Join(dir, AppFile), search)
		if err != nil {
			return r, err
		}
		check.Name, r.Trips = name, trips
		if r.Checks = append(r.Checks, check); check.Verdict != judge.Passed {
			return r, nil
		}
	}
	told("the reference")
	if theirs, err := referenceTrips(ctx, e, language, dir); err == nil {
		r.Theirs = theirs // if the reference cannot run, its cost stays unknown; the verdict does not depend on it
	}
	return r, ctx.Err()
}

// referenceTrips returns how many round trips to the servers the reference solution needs for one buyer
// alone. It uses the servers of dir, the learner's folder.
func referenceTrips(ctx context.Context, e exercises.Exercise, language, dir string) (trips float64, err error) {
	temp, err := os.MkdirTemp("", "shop-exercise-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := startReference(ctx, e, temp, language, dir); err != nil {
		return 0, err
	}
	p, err := app.Load(filepath.Join(temp, AppFile))
	if err == nil {
		err = p.Guard("")
	}
	if err != nil {
		return 0, err
	}
	opened, err := program.Open(ctx, p, explore.Config{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	seen, err := opened.Runner.Check(ctx)
	if err == nil {
		err = seen.Err()
	}
	return tripsIn(seen), err
}

// tripsIn counts the commands of the first buyer alone. Each is a round trip.
func tripsIn(seen target.Check) float64 {
	if len(seen.Buyers) == 0 {
		return 0
	}
	return float64(len(seen.Buyers[0].Commands))
}

func programSearch(s exercises.Search) string {
	return s.Name() + ", on MariaDB or MySQL"
}

// searchProgram runs every schedule (order of the buyers' commands) of the program in file. The result
// `trips` counts the round trips of the first buyer alone.
func searchProgram(ctx context.Context, file string, s exercises.Search) (check judge.Check, trips float64, err error) {
	p, err := app.Load(file)
	if err != nil {
		return check, 0, err
	}
	if err := p.Guard(""); err != nil {
		return check, 0, err
	}
	if s.Buyers > 0 {
		if err := p.SetBuyers(s.Buyers); err != nil {
			return check, 0, err
		}
	}
	events, err := program.Events(s.Events)
	if err != nil {
		return check, 0, err
	}
	config := explore.Config{
		OfProgram: program.Of(p), Buyers: len(p.Buyers), Events: events, Bound: -1, Budget: programWithin, First: true,
	}
	config.Again = "shop exercise check"
	if s.Bound != nil {
		config.Bound = *s.Bound
	}
	opened, err := program.Open(ctx, p, config)
	if err != nil {
		return check, 0, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	seen, err := opened.Runner.Check(ctx)
	if err == nil {
		err = seen.Err()
	}
	if err != nil {
		return judge.Check{Verdict: judge.Wrong, Why: "one buyer alone: " + strings.Join(strings.Fields(err.Error()), " ")}, 0, ctx.Err()
	}
	x, err := opened.Explorer(&config, func(string, ...any) {})
	if err != nil {
		return check, 0, err
	}
	report, err := program.Search(ctx, x, config)
	if err != nil {
		return check, 0, err
	}
	return programCheck(report, max(s.Stock, 1)), tripsIn(seen), ctx.Err()
}

// programCheck turns the result of a search into a check. The parameter `stocked` is the stock at the start.
func programCheck(r explore.Report, stocked int64) judge.Check {
	switch {
	case r.Violations > 0:
		var table, mermaid strings.Builder
		_, _ = r.Witness.Text(&table, r.Buyers), r.Witness.Mermaid(&mermaid, r.Buyers)
		return judge.Check{
			Verdict: judge.Wrong, Why: programWhy(r.Witness, stocked), Story: judge.Story(r.Witness),
			Diagram: table.String(), Mermaid: mermaid.String(),
		}
	case r.Void > 0:
		return judge.Check{Verdict: judge.Unsure, Why: fmt.Sprintf("nothing was found, but %s discarded: %s", plural.Count(r.Void, "run"), r.Extent())}
	case !r.Complete:
		return judge.Check{Verdict: judge.Unsure, Why: "nothing was found, and not all orders were tried: " + r.Extent()}
	case r.Empty(), r.Explored < 2:
		return judge.Check{Verdict: judge.Unsure, Why: "nothing was shown: " + r.Extent()}
	}
	return judge.Check{Verdict: judge.Passed, Why: r.Extent()}
}

// programWhy describes in one line the violation that a search has found. If stock and records are wrong, it
// uses the same words as for exercises in Go, followed by the query that found the error.
func programWhy(w *explore.Witness, stocked int64) string {
	verdict, why, by := string(w.Verdict), w.Why, "; "
	if len(w.Findings) > 0 {
		why, by = witness.Why(w.Findings), ", by a query that "
		if rows := w.Findings[0].Rows; len(rows) > 0 {
			why += " -> " + strings.Join(rows[0], ", ")
		}
	}
	if books, read := programBooks(w, stocked); read && (books.Drift != 0 || books.Oversold > 0) {
		v, seen := audit.Judge(audit.Evidence{Sums: books})
		verdict, why = string(v), seen+by+why
	}
	return verdict + ": " + why
}

// programBooks returns stock and records at the end of a schedule, from the queries in the exercise's app.yaml.
// It counts each record as one unit. The result `read` is false if app.yaml has no queries for these values.
func programBooks(w *explore.Witness, stocked int64) (r audit.Sums, read bool) {
	if len(w.Steps) == 0 {
		return r, false
	}
	values := map[string]int64{}
	for i, value := range w.Values(w.Steps[len(w.Steps)-1]) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return r, false
		}
		values[w.Columns()[i]] = n
	}
	left, stock := values["stock"]
	records, history := values["records"]
	return audit.Sums{Stocked: stocked, Leftover: left, Records: records, UnitsSold: records}.Computed(), stock && history
}
