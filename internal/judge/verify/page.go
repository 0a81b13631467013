package verify

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// legend explains the table of a page.
const legend = `
**breaks**: a condition breaks the strategy, as the catalogue promises. **may break**: for some conditions the catalogue
makes no promise, because timing decides. **!** contradicts the catalogue, **?** proved nothing; the evidence stands below.
"The other N" are the conditions that the row does not name, without those that do not apply to the strategy.
[faults.md](../faults.md) describes the conditions, [verdicts.md](../verdicts.md) the verdicts.
`

// page returns the report as a page of documentation: a short table in place of the
// matrix, and no evidence except for cells that are not as promised.
func (r Report) page() *report.Page {
	strategies, conditions := axes(r.Cells)
	t := report.Table{Columns: report.Columns("strategy", "result", "broken by, as promised", "seen without a promise", "held under")}
	rows := map[string]int{}
	for _, s := range strategies {
		row := r.row(s, conditions)
		i, ok := rows[fmt.Sprint(row[1:])]
		if !ok {
			rows[fmt.Sprint(row[1:])] = len(t.Rows)
			t.Rows = append(t.Rows, row)
			continue
		}
		t.Rows[i][0].Text += ", " + s
	}
	return &report.Page{
		Intro:  fmt.Sprintf("This page answers which faults break which lock strategy on %s, for developers who choose one.", r.where()),
		Legend: legend + "\nConditions of this run: " + list(conditions) + ".\n",
		Table:  t,
		After:  r.unpromised() + r.notRun(strategies, conditions) + r.runAgain(),
	}
}

// distribution matches what a database's version says about its packaging.
var distribution = regexp.MustCompile(`-MariaDB[^,]*`)

// where names the servers of the run.
func (r Report) where() string {
	where := "the " + r.Engine + " engine"
	switch {
	case r.Target != "":
		return r.Target
	case r.Server != "":
		where = distribution.ReplaceAllString(r.Server, "")
	}
	switch r.Redis {
	case topology.Sentinel:
		where += ", with Redis behind sentinels"
	case topology.Cluster:
		where += ", with a Redis cluster"
	}
	return where
}

// row returns the line of one strategy.
func (r Report) row(strategy string, conditions []promise.Condition) []report.Cell {
	var broken, free, held, contradict, void groups
	played := 0
	for _, condition := range conditions {
		c := r.cell(strategy, condition)
		if c == nil {
			continue
		}
		played++
		shown, column, mark := presented{c}, &held, ""
		switch {
		case shown.status() == report.Contradicts:
			column, mark = &contradict, "! "
		case !c.OK:
			column, mark = &void, "? "
		case c.Promise == "":
			column = &free
		case c.Verdict != verdict.Holds:
			column = &broken
		}
		column.add(mark+shown.counted(), condition)
	}
	var words []string
	switch {
	case contradict != nil:
		words = append(words, contradict.text())
	case broken != nil:
		words = append(words, "breaks")
	case free != nil:
		words = append(words, "may break")
	default:
		words = append(words, "holds")
	}
	if void != nil {
		words = append(words, void.text())
	}
	result := report.Cell{Text: strings.Join(words, "; ")}
	if result.Text != "holds" {
		result.Status = report.Breaks
	}
	longest(broken, free, held).shorten(played)
	return []report.Cell{{Text: strategy, Code: true}, result, {Text: broken.text()}, {Text: free.text()}, {Text: strings.TrimPrefix(held.text(), "holds: ")}}
}

// A group is the conditions of a row under which the same was seen.
type group struct {
	seen       string
	conditions []promise.Condition
	short      string // shown on a page instead of the conditions; "" for their names
}

type groups []*group

func (g *groups) add(seen string, c promise.Condition) {
	i := slices.IndexFunc(*g, func(one *group) bool { return one.seen == seen })
	if i < 0 {
		i = len(*g)
		*g = append(*g, &group{seen: seen})
	}
	(*g)[i].conditions = append((*g)[i].conditions, c)
}

// text lists them: "oversold: pause, partition; stalled: crash".
func (g groups) text() string {
	var texts []string
	for _, one := range g {
		texts = append(texts, one.seen+": "+cmp.Or(one.short, list(one.conditions)))
	}
	return strings.Join(texts, "; ")
}

// longest returns the group with most conditions.
func longest(columns ...groups) *group {
	most := &group{}
	for _, one := range slices.Concat(columns...) {
		if len(one.conditions) >= len(most.conditions) {
			most = one
		}
	}
	return most
}

// shorten has the group count its conditions instead of naming them. A row shortens one
// group, so the names are those that the rest of the row does not mention.
func (g *group) shorten(played int) {
	switch n := len(g.conditions); {
	case n < 3:
	case n == played:
		g.short = fmt.Sprintf("all %d", n)
	default:
		g.short = fmt.Sprintf("the other %d", n)
	}
}

func list(conditions []promise.Condition) string {
	var names []string
	for _, c := range conditions {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}

// unpromised gives each reason for which the catalogue makes no promise, with its strategies.
func (r Report) unpromised() string {
	var reasons grouped
	for _, c := range r.Cells {
		if c.NoPromise != "" {
			reasons.add(c.NoPromise, c.Strategy)
		}
	}
	return section("Why there is no promise", reasons.lines(func(why, strategies string) string {
		return strings.ToUpper(why[:1]) + why[1:] + ". Strategies: " + strategies + "."
	}))
}

// notRun gives the conditions that apply to a strategy and have no cell, and what else was left out.
func (r Report) notRun(strategies []string, conditions []promise.Condition) string {
	var missing grouped
	for _, s := range strategies {
		entry, known := lockstrategy.ByName(s)
		rest := slices.DeleteFunc(slices.Clone(conditions), func(c promise.Condition) bool {
			return r.cell(s, c) != nil || known && !lockstrategy.Affects(c, entry.Needs)
		})
		if len(rest) > 0 {
			missing.add(list(rest), s)
		}
	}
	lines := missing.lines(func(conditions, strategies string) string { return strategies + ": " + conditions })
	return section("Not run", append(lines, r.LeftOut...))
}

// runAgain says how to repeat the run, and how to read the evidence of a cell. Its example
// is the first fault that breaks a strategy which holds without a fault.
func (r Report) runAgain() string {
	i := slices.IndexFunc(r.Cells, func(c Cell) bool {
		calm := r.cell(c.Strategy, promise.TwoProcesses)
		return presented{&c}.status() == report.Breaks && slices.Contains(promise.Faults(), c.Fault) && calm != nil && calm.Verdict == verdict.Holds
	})
	c := r.Cells[max(i, 0)]
	return fmt.Sprintf("\n## Run it, and read the evidence of one cell\n\n    ./%s --report matrix.md --report matrix.json\n    ./shop verify --explain %s/%s --from matrix.json\n",
		cmp.Or(r.Command, "shop verify"), c.Strategy, c.Fault)
}

// grouped are strategies that share a text.
type grouped struct {
	texts      []string
	strategies map[string][]string
}

func (g *grouped) add(text, strategy string) {
	if g.strategies == nil {
		g.strategies = map[string][]string{}
	}
	if g.strategies[text] == nil {
		g.texts = append(g.texts, text)
	}
	if !slices.Contains(g.strategies[text], strategy) {
		g.strategies[text] = append(g.strategies[text], strategy)
	}
}

// lines words each text with the names of its strategies.
func (g grouped) lines(line func(text, strategies string) string) (lines []string) {
	for _, t := range g.texts {
		lines = append(lines, line(t, "`"+strings.Join(g.strategies[t], "`, `")+"`"))
	}
	return lines
}

// section is a list with a heading; "" without a line.
func section(heading string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "\n## " + heading + "\n\n- " + strings.Join(lines, "\n- ") + "\n"
}
