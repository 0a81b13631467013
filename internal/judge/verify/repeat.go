package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// repeated returns the jobs n times, one whole run after the other.
func repeated(jobs []job, n int) (all []job) {
	for play := range max(1, n) {
		for _, j := range jobs {
			if j.play = play; n > 1 {
				j.plays = n
			}
			all = append(all, j)
		}
	}
	return all
}

// merge makes one result from all runs of a strategy under a condition. It ignores runs that are nil.
func merge(played []*Cell) (cells []Cell) {
	byCell := map[[2]string][]Cell{}
	var order [][2]string
	for _, c := range played {
		if c == nil {
			continue
		}
		key := [2]string{c.Strategy, string(c.Fault)}
		if byCell[key] == nil {
			order = append(order, key)
		}
		byCell[key] = append(byCell[key], *c)
	}
	for _, key := range order {
		cells = append(cells, merged(byCell[key]))
	}
	return cells
}

// merged returns the most informative run of a cell: the first contradiction, otherwise the first that failed
// or is inconclusive. It adds how often each verdict was seen. The cell is as promised only if every run is.
func merged(plays []Cell) Cell {
	if len(plays) == 1 {
		return plays[0]
	}
	at := 0
	for _, shows := range []func(c Cell) bool{
		func(c Cell) bool { return !c.OK },
		func(c Cell) bool { return c.HarnessError != "" },
		func(c Cell) bool { return !c.OK && c.Verdict != verdict.Inconclusive },
	} {
		if i := slices.IndexFunc(plays, shows); i >= 0 {
			at = i
		}
	}
	cell := plays[at]
	cell.Verdicts = map[verdict.Verdict]int{}
	cell.DurationMS, cell.Acknowledged, cell.Lost = 0, 0, 0
	for _, play := range plays {
		cell.DurationMS += play.DurationMS
		cell.Acknowledged += play.Acknowledged
		cell.Lost += play.Lost
		cell.Verdicts[play.Verdict]++
	}
	cell.Evidence = fmt.Sprintf("played %d times: %s; in all %d sales were acknowledged and %d of them have no record; play %d: %s",
		len(plays), tallied(cell.Verdicts), cell.Acknowledged, cell.Lost, at+1, cell.Evidence)
	return cell
}

// tallied lists how often each verdict was seen, the most frequent first.
func tallied(verdicts map[verdict.Verdict]int) string {
	seen := slices.SortedFunc(maps.Keys(verdicts), func(a, b verdict.Verdict) int {
		return cmp.Or(cmp.Compare(verdicts[b], verdicts[a]), cmp.Compare(a, b))
	})
	var counts []string
	for _, v := range seen {
		counts = append(counts, fmt.Sprintf("%s %d", v, verdicts[v]))
	}
	return strings.Join(counts, ", ")
}

// counted returns the text for the matrix: the verdict, or how often each verdict was seen if the cell was run
// more than once.
func (c presented) counted() string {
	if len(c.Verdicts) > 0 && c.HarnessError == "" {
		return tallied(c.Verdicts)
	}
	return c.shown()
}
