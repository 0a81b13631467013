package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/load/sizing/measure"
	"github.com/oversell/oversell/internal/lockstrategy"
)

//go:generate go test -run TestScalePage -update .

// TestScalePage: the tables of docs/scale.md are those of the catalogue, of the points in
// internal/load/sizing/reference.csv, and of the predictions.
func TestScalePage(t *testing.T) {
	t.Parallel()
	const file = "../../docs/scale.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := predictions(t)
	parts := map[string]string{
		"where":       whereMeasured(t),
		"products":    ratioTable(all, productsColumns()),
		"processes":   ratioTable(all, processesColumns()),
		"nodes":       ratioTable(all, nodesColumns()),
		"predictions": predictionsTable(all),
		"excused":     excusedTable(all),
		"paths":       pathsTable(),
		"growth":      growthTable(),
	}
	want := generatedPart.ReplaceAllStringFunc(string(text), func(part string) string {
		name := generatedPart.FindStringSubmatch(part)[1]
		body, ok := parts[name]
		if command, isExample := strings.CutPrefix(name, "$ shop "); isExample {
			body, ok = example(t, command), true
		}
		if !ok {
			t.Fatalf("docs/scale.md asks for %q, which nobody writes", name)
		}
		delete(parts, name)
		return "<!-- " + name + " -->\n" + strings.TrimSpace(body) + "\n<!-- end -->"
	})
	for name := range parts {
		t.Errorf("docs/scale.md has no place for %q", name)
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Error("docs/scale.md is not what was measured and predicted: run make generate")
	}
}

// A generatedPart is a comment with its name, the text, and a comment at the end.
var generatedPart = regexp.MustCompile(`(?s)<!-- ((?:\$ )?[a-z][^\n]*) -->\n.*?<!-- end -->`)

// whereMeasured says on what.
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
	return text + fmt.Sprintf(" Others used %.1f of the processors meanwhile.", m.Others())
}

// A ratioColumn is one setting, as a ratio to another one.
type ratioColumn struct {
	name   string
	of, to sizing.Setting // to has no products where the column is sales a second
}

func one() sizing.Setting {
	return sizing.Setting{Nodes: 1, Writers: 1, Processes: 1, Products: 1, Buyers: measure.PointBuyers}
}

func with(s sizing.Setting, change func(*sizing.Setting)) sizing.Setting {
	change(&s)
	return s
}

func productsColumns() []ratioColumn {
	all := []ratioColumn{{name: "sales/s, 1 product", of: one()}}
	for _, n := range []int{10, 100, 1000} {
		all = append(all, ratioColumn{fmt.Sprintf("%d products", n), with(one(), func(s *sizing.Setting) { s.Products = n }), one()})
	}
	for _, products := range []int{1, 100} {
		base := with(one(), func(s *sizing.Setting) { s.Products = products })
		for _, delay := range []float64{1, 5} {
			all = append(all, ratioColumn{fmt.Sprintf("%g ms, %d", delay, products), with(base, func(s *sizing.Setting) { s.DelayMS = delay }), base})
		}
	}
	for _, records := range []int64{10_000_000} {
		base := with(one(), func(s *sizing.Setting) { s.Products = 100 })
		all = append(all, ratioColumn{fmt.Sprintf("%d M records, 100", records/1_000_000), with(base, func(s *sizing.Setting) { s.Records = records }), base})
	}
	return all
}

func processesColumns() (all []ratioColumn) {
	for _, products := range []int{1, 100} {
		base := with(one(), func(s *sizing.Setting) { s.Products = products })
		all = append(all, ratioColumn{name: fmt.Sprintf("sales/s, %d product(s)", products), of: base})
		for _, n := range []int{2, 4, 8} {
			all = append(all, ratioColumn{fmt.Sprintf("%d processes", n), with(base, func(s *sizing.Setting) { s.Processes = n }), base})
		}
	}
	return all
}

// nodesColumns compare three nodes, written to by one and by all, with one.
func nodesColumns() (all []ratioColumn) {
	for _, products := range []int{1, 100} {
		base := with(one(), func(s *sizing.Setting) { s.Products = products })
		all = append(all, ratioColumn{name: fmt.Sprintf("sales/s, %d product(s), one node", products), of: base})
		for _, writers := range []int{1, 3} {
			for _, processes := range []int{1, 3} {
				if writers > processes {
					continue // no more are written to
				}
				all = append(all, ratioColumn{fmt.Sprintf("%d writer(s), %d process(es)", writers, processes), with(base, func(s *sizing.Setting) {
					s.Nodes, s.Writers, s.Processes = 3, writers, processes
				}), base})
			}
		}
	}
	return all
}

// ratioTable has a row a strategy that was measured in one of the columns.
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
	empty := true
	for _, name := range lockstrategy.Names() {
		row := "| `" + name + "` |"
		for _, c := range columns {
			value, there := measured[name][c.of]
			base := measured[name][c.to]
			switch {
			case !there:
				row += " |"
			case c.to.Products == 0:
				row += fmt.Sprintf(" %.0f |", value)
			default:
				row, empty = row+fmt.Sprintf(" %.2f |", value/base), false
			}
		}
		if measured[name] != nil {
			rows = append(rows, row)
		}
	}
	if empty {
		return "Not measured yet."
	}
	return strings.Join(rows, "\n")
}

// predictionsTable has a row a setting: how many predictions were how far away.
func predictionsTable(all []prediction) string {
	rows := []string{
		"| setting | points | within 25 % | or among the rounds | in the middle | lowest | highest |",
		"|---|---:|---:|---:|---:|---:|---:|",
	}
	var order []string
	offs, met, among := map[string][]float64{}, map[string]int{}, map[string]int{}
	for _, p := range all {
		name := fmt.Sprint(p.Setting)
		if p.calibrates {
			continue // it is met because the rest is reckoned from it
		}
		if offs[name] == nil {
			order = append(order, name)
		}
		offs[name] = append(offs[name], p.off())
		if p.met() {
			met[name]++
		} else if p.among() {
			among[name]++
		}
	}
	var allPoints, allMet, allAmong int
	for _, name := range order {
		o := offs[name]
		slices.Sort(o)
		allPoints, allMet, allAmong = allPoints+len(o), allMet+met[name], allAmong+among[name]
		rows = append(rows, fmt.Sprintf("| %s | %d | %d | %s | %+.0f %% | %+.0f %% | %+.0f %% |",
			name, len(o), met[name], number(among[name]), 100*o[len(o)/2], 100*o[0], 100*o[len(o)-1]))
	}
	return strings.Join(append(rows, fmt.Sprintf("| all | %d | %d | %d | | | |", allPoints, allMet, allAmong)), "\n")
}

// excusedTable has the points that the laws do not meet.
func excusedTable(all []prediction) string {
	rows := []string{"| strategy | where | measured | predicted | what the laws leave out |", "|---|---|---:|---:|---|"}
	for _, p := range all {
		if why := excuse(p.Point); why != "" && !p.met() && !p.among() {
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %.0f | %.0f | %s |", p.Strategy, p.Setting, p.PerSecond, p.predicted.PerSecond, why))
		}
	}
	if len(rows) == 2 {
		return "None."
	}
	return strings.Join(rows, "\n")
}

// pathsTable has what a sale sends, and its law.
func pathsTable() string {
	rows := []string{
		"| strategy | statements | of them with the row locked | round trips to the lock | a turn keeps waiting | one product sells at most |",
		"|---|---:|---:|---:|---|---|",
	}
	for _, e := range lockstrategy.All() {
		p := e.Path
		rows = append(rows, fmt.Sprintf("| `%s` | %d | %d | %s | %s | %s |", e.Name, p.SQL, p.RowSQL, number(p.Lock),
			[]string{"nobody but at the row", "its process", "all"}[p.Keeps], sizing.Law(p)))
	}
	return strings.Join(rows, "\n")
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// growthTable has what becomes of each strategy; those that grow alike share a row.
func growthTable() string {
	rows := []string{
		"| strategy | more products | more shop processes | more writers of one Galera cluster | a product's shard is | a thousand nodes |",
		"|---|---|---|---|---|---|",
	}
	type kind struct {
		growth    sizing.Growth
		oneHolder bool // it holds in one process alone
	}
	names := map[kind][]string{}
	var order []kind
	for _, e := range lockstrategy.All() {
		k := kind{sizing.GrowthOf(e.Path), breaksInTwo(e)}
		if names[k] == nil {
			order = append(order, k)
		}
		names[k] = append(names[k], "`"+e.Name+"`")
	}
	for _, k := range order {
		processes := k.growth.Processes
		if k.oneHolder {
			processes = "it sells twice; for what it is worth: " + processes
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", strings.Join(names[k], ", "),
			k.growth.Products, processes, k.growth.Nodes, k.growth.Shard, k.growth.Thousand))
	}
	return strings.Join(rows, "\n")
}

// example is what a command prints.
func example(t *testing.T, command string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), strings.Fields(command), &stdout, &stderr); code != 0 {
		t.Fatalf("shop %s: exit %d: %s", command, code, cmp.Or(stderr.String(), "nothing said"))
	}
	return "```\n" + stdout.String() + "```"
}

// breaksInTwo: two processes, or two buyers, sell a unit twice.
func breaksInTwo(e lockstrategy.Entry) bool {
	return e.Promised(promise.TwoProcesses, dialect.MySQL) != verdict.Holds
}
