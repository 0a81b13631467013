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

const legend = `
**breaks**: it broke where the catalogue says so. **may break**: some conditions have no promise. **!** contradicts a promise. **?** proved nothing.
"The other N": all applicable conditions that the row does not name.
`

// A matrixPage is a report as a page of the documentation. A short table replaces the matrix. The page shows
// evidence only for cells (strategies under one condition) that are not as promised.
type matrixPage struct{ Report }

func (r matrixPage) page() *report.Page {
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
	except := ""
	if all := slices.DeleteFunc(slices.Clone(conditions), func(c promise.Condition) bool { return !promise.BreaksAll(c) }); len(all) > 0 {
		except = fmt.Sprintf("The result leaves out `%s`, which breaks every strategy.\n", list(all))
	}
	return &report.Page{
		Intro:  "This page shows developers which faults break which lock strategy on these servers.",
		Legend: legend + except + "\nConditions: " + list(conditions) + ".\n",
		Table:  t,
		After:  r.notRun(strategies, conditions) + "\nRun it: `./" + cmp.Or(r.Command, "shop verify") + "`\n",
	}
}

// distribution matches the part of MariaDB's version that names the Linux distribution.
var distribution = regexp.MustCompile(`-MariaDB[^,]*`)

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

func (r matrixPage) row(strategy string, conditions []promise.Condition) []report.Cell {
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
	case broken.tellApart():
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

// A group lists the conditions under which a strategy has the same verdicts.
type group struct {
	seen       string // the verdicts as text, with a mark if they are not as promised
	conditions []promise.Condition
	short      string // text that replaces the conditions on a page; "" lists their names
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

// text lists the groups, such as "oversold: pause, partition; stalled: crash".
func (g groups) text() string {
	var texts []string
	for _, one := range g {
		texts = append(texts, one.seen+": "+cmp.Or(one.short, list(one.conditions)))
	}
	return strings.Join(texts, "; ")
}

// tellApart reports whether the groups contain a condition under which some strategy holds.
func (g groups) tellApart() bool {
	return slices.ContainsFunc(g, func(one *group) bool {
		return slices.ContainsFunc(one.conditions, func(c promise.Condition) bool { return !promise.BreaksAll(c) })
	})
}

// longest returns the group with the most conditions, and the last of several equal ones.
func longest(columns ...groups) *group {
	most := &group{}
	for _, one := range slices.Concat(columns...) {
		if len(one.conditions) >= len(most.conditions) {
			most = one
		}
	}
	return most
}

// shorten makes the page show the number of conditions instead of their names. A row shortens only one group.
// So a reader knows its conditions: all those that the row does not name.
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

// notRun returns the section "Not run" of the page. It lists each condition that applies to a strategy but has
// no cell, and the entries of LeftOut. It omits servers that a condition needs and strategies that cannot be
// explored, since other pages list these.
func (r matrixPage) notRun(strategies []string, conditions []promise.Condition) string {
	var missing []string             // lists of conditions, each once
	without := map[string][]string{} // the strategies for each of these lists
	for _, s := range strategies {
		entry, known := lockstrategy.ByName(s)
		rest := slices.DeleteFunc(slices.Clone(conditions), func(c promise.Condition) bool {
			return r.cell(s, c) != nil || known && !lockstrategy.Affects(c, entry.Needs)
		})
		if len(rest) > 0 {
			if without[list(rest)] == nil {
				missing = append(missing, list(rest))
			}
			without[list(rest)] = append(without[list(rest)], s)
		}
	}
	var lines []string
	for _, conditions := range missing {
		lines = append(lines, "`"+strings.Join(without[conditions], "`, `")+"`: "+conditions)
	}
	for _, left := range r.LeftOut {
		if !strings.Contains(left, ": run with --local-") && !strings.HasPrefix(left, "the explorer, ") {
			lines = append(lines, left)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "\n## Not run\n\n- " + strings.Join(lines, "\n- ") + "\n"
}
