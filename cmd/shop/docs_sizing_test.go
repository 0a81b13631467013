package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/load/sizing/measure"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// TestSizingPages compares the generated parts of the pages about sizing with the catalogue, the
// points in internal/load/sizing/reference.csv, and the predictions. A part is a comment with its
// name, the text, and the comment "end". A part whose name is a command shows its output.
func TestSizingPages(t *testing.T) {
	t.Parallel()
	all, _, _ := predictions(t)
	for file, parts := range map[string]map[string]string{
		"guides/size-a-sale.md":   {"growth": growthTable()},
		"design/sizing.md":        {"paths": pathsTable(), "predictions": predictionsTable(all)},
		"reference/throughput.md": {"where": whereMeasured(t), "measured": ratioTable(all, ratioColumns()), "example": ratioExample(all), "excused": excusedTable(all)},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			path := "docs/" + file
			want := generatedPart.ReplaceAllStringFunc(readPage(t, path), func(part string) string {
				name := generatedPart.FindStringSubmatch(part)[1]
				body, ok := parts[name]
				if command, isExample := strings.CutPrefix(name, "$ shop "); isExample {
					body, ok = "```\n"+outputOf(t, command, 0)+"```", true
				}
				if !ok {
					t.Fatalf("%s asks for the unknown part %q", path, name)
				}
				delete(parts, name)
				return "<!-- " + name + " -->\n" + strings.TrimSpace(body) + "\n<!-- end -->"
			})
			for name := range parts {
				t.Errorf("%s has no place for %q", path, name)
			}
			comparePage(t, path, want)
		})
	}
}

var generatedPart = regexp.MustCompile(`(?s)<!-- ((?:\$ )?[a-z][^\n]*) -->\n.*?<!-- end -->`)

// whereMeasured describes the measurement behind the tables.
func whereMeasured(t *testing.T) string {
	t.Helper()
	m, err := sizing.Reference()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%s; %d points, %d buyers, medians of %d rounds.",
		strings.ToUpper(m.From()[:1])+m.From()[1:], len(m.Points), m.Points[0].Buyers, len(m.Points[0].Rounds))
	if m.Provisional != "" {
		return text
	}
	return text + fmt.Sprintf(" Other programs used %.1f processors during the measurement.", m.Others())
}

// A ratioColumn is one setting, as a ratio to another setting.
type ratioColumn struct {
	name   string
	of, to sizing.Setting // without products, the column is sales per second
}

func one() sizing.Setting {
	return sizing.Setting{Nodes: 1, Writers: 1, Processes: 1, Products: 1, Buyers: measure.PointBuyers}
}

func with(s sizing.Setting, change func(*sizing.Setting)) sizing.Setting {
	change(&s)
	return s
}

// ratioColumns vary one value at a time.
func ratioColumns() []ratioColumn {
	return []ratioColumn{
		{name: "sales/s", of: one()},
		{"100 products", with(one(), func(s *sizing.Setting) { s.Products = 100 }), one()},
		{"5 ms delay", with(one(), func(s *sizing.Setting) { s.DelayMS = 5 }), one()},
		{"8 processes", with(one(), func(s *sizing.Setting) { s.Processes = 8 }), one()},
		{"3 Galera writers", with(one(), func(s *sizing.Setting) { s.Nodes, s.Writers, s.Processes = 3, 3, 3 }), one()},
	}
}

// ratioTable has a row for each strategy that was measured in all columns. The first column is sales
// per second; the others are ratios to it.
func ratioTable(all []prediction, columns []ratioColumn) string {
	measured := map[string]map[sizing.Setting]float64{}
	for _, p := range all {
		s := p.Setting
		s.Database = ""
		if measured[p.Strategy] == nil {
			measured[p.Strategy] = map[sizing.Setting]float64{}
		}
		measured[p.Strategy][s] = p.PerSecond
	}
	head, line := "| strategy |", "|---|"
	for _, c := range columns {
		head, line = head+" "+c.name+" |", line+"---:|"
	}
	rows := []string{head, line}
	for _, e := range lockstrategy.All() {
		name := e.Name
		row, isComplete := "| "+markedName(e)+" |", true
		for _, c := range columns {
			value, ok := measured[name][c.of]
			isComplete = isComplete && ok
			if c.to.Products == 0 {
				row += fmt.Sprintf(" %.0f |", value)
			} else {
				row += fmt.Sprintf(" %.2f |", value/measured[name][c.to])
			}
		}
		if isComplete {
			rows = append(rows, row)
		}
	}
	return strings.Join(rows, "\n")
}

// ratioExample reads two cells of the table aloud.
func ratioExample(all []prediction) string {
	_, row, _ := strings.Cut(ratioTable(all, ratioColumns()), "| `for-update` |")
	cells := strings.Split(row, " | ")
	delayed, _ := strconv.ParseFloat(cells[2], 64)
	return fmt.Sprintf("Example: `for-update` sells %s times as much with 100 products as with one, and 5 ms of delay leave %.0f %% of its sales.", cells[1], 100*delayed)
}

// predictionsTable counts for each kind of setting the predictions that were met, and shows their errors.
func predictionsTable(all []prediction) string {
	rows := []string{
		"| setting | points | within 25 % | within the rounds' range | median error | errors |",
		"|---|---:|---:|---:|---:|---|",
	}
	kinds := []string{"several products", "several processes", "network delay", "10 million records", "three Galera nodes"}
	offs, met, among := map[string][]float64{}, map[string]int{}, map[string]int{}
	var points, allMet, allAmong int
	for _, p := range all {
		if p.calibrates {
			continue // it is met by construction
		}
		kind := kindOf(p.Setting)
		offs[kind] = append(offs[kind], p.off())
		points++
		if p.met() {
			met[kind]++
			allMet++
		} else if p.among() {
			among[kind]++
			allAmong++
		}
	}
	for _, kind := range kinds {
		o := offs[kind]
		slices.Sort(o)
		rows = append(rows, fmt.Sprintf("| %s | %d | %d | %d | %+.0f %% | %+.0f %% to %+.0f %% |",
			kind, len(o), met[kind], among[kind], 100*o[len(o)/2], 100*o[0], 100*o[len(o)-1]))
	}
	return strings.Join(append(rows, fmt.Sprintf("| all | %d | %d | %d | | |", points, allMet, allAmong)), "\n")
}

// kindOf names the value that a setting varies.
func kindOf(s sizing.Setting) string {
	switch {
	case s.Nodes > 1:
		return "three Galera nodes"
	case s.Records > 0:
		return "10 million records"
	case s.DelayMS > 0:
		return "network delay"
	case s.Processes > 1:
		return "several processes"
	}
	return "several products"
}

// excusedTable lists why the laws miss some points, with the strategies and the largest error.
func excusedTable(all []prediction) string {
	rows := []string{"| strategies | largest error | reason |", "|---|---:|---|"}
	for _, e := range excused {
		worst := 0.0
		for _, p := range all {
			if excuse(p.Point) != e.reason || p.met() || p.among() {
				continue
			}
			if math.Abs(p.off()) > math.Abs(worst) {
				worst = p.off()
			}
		}
		if worst != 0 {
			rows = append(rows, fmt.Sprintf("| `%s` | %+.0f %% | %s |", strings.Join(strings.Fields(e.names), "`, `"), 100*worst, e.reason))
		}
	}
	return strings.Join(rows, "\n")
}

// markedName returns the name of a strategy, with a mark if some condition breaks it.
func markedName(e lockstrategy.Entry) string {
	if len(e.Breaks(dialect.MySQL)) > 0 {
		return "`" + e.Name + "` \\*"
	}
	return "`" + e.Name + "`"
}

// pathsTable has the law of each strategy. Equal strategies share a row.
func pathsTable() string {
	rows := []string{
		"| strategy | others wait | maximum for one product |",
		"|---|---|---|",
	}
	names := map[string]string{}
	for _, e := range lockstrategy.All() {
		p := e.Path
		row := []string{"at the row", "in its process", "all"}[p.Keeps] + " | " + sizing.Law(p) + " |"
		if names[row] == "" {
			rows = append(rows, row)
		} else {
			names[row] += ", "
		}
		names[row] += markedName(e)
	}
	for i, row := range rows[2:] {
		rows[2+i] = "| " + names[row] + " | " + row
	}
	return strings.Join(rows, "\n")
}

// growthTable shows how each strategy grows. Strategies that grow alike share a row.
func growthTable() string {
	rows := []string{
		"| strategy | more products | more shop processes | more Galera writers |",
		"|---|---|---|---|",
	}
	names := map[sizing.Growth][]string{}
	var order []sizing.Growth
	for _, e := range lockstrategy.All() {
		growth := sizing.GrowthOf(e.Path)
		if breaksInTwo(e) {
			growth.Processes = "**oversells**"
		}
		if names[growth] == nil {
			order = append(order, growth)
		}
		names[growth] = append(names[growth], markedName(e))
	}
	for _, g := range order {
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", strings.Join(names[g], ", "), g.Products, g.Processes, g.Nodes))
	}
	return strings.Join(rows, "\n")
}

// breaksInTwo reports whether two processes sell a unit twice.
func breaksInTwo(e lockstrategy.Entry) bool {
	return e.Promised(promise.TwoProcesses, dialect.MySQL) != verdict.Holds
}
