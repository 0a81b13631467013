package soak

import (
	"slices"

	"github.com/oversell/oversell/internal/load/quantile"
)

// A Rest has the resources of an idle process after an audit.
type Rest struct {
	Wave    int `json:"wave"`
	Process int `json:"process"`
	Life    int `json:"life"` // number of restarts after a kill
	Use
}

// A Trend compares the resources of an idle process after its first and its last wave.
type Trend struct {
	Process int    `json:"process"`
	Life    int    `json:"life"`
	Waves   int    `json:"waves"`
	What    string `json:"what"` // goroutines or descriptors
	First   int    `json:"first"`
	Last    int    `json:"last"`
	Grows   bool   `json:"grows"`
}

// enough is the number of samples that a trend needs: two in each quarter.
const enough = 8

// Trends returns the trends of idle samples, which must be in order of time. A killed process and
// its successor have separate trends.
func Trends(rests []Rest) (trends []Trend) {
	type life struct{ process, life int }
	var lives []life
	byLife := map[life][]Rest{}
	for _, r := range rests {
		l := life{r.Process, r.Life}
		if byLife[l] == nil {
			lives = append(lives, l)
		}
		byLife[l] = append(byLife[l], r)
	}
	slices.SortStableFunc(lives, func(a, b life) int { return a.process - b.process })
	for _, l := range lives {
		for _, m := range []struct {
			what string
			of   func(Use) int
		}{{"goroutines", func(u Use) int { return u.Goroutines }}, {"descriptors", func(u Use) int { return u.Descriptors }}} {
			var values []int
			for _, r := range byLife[l] {
				values = append(values, m.of(r.Use))
			}
			trends = append(trends, Trend{
				Process: l.process, Life: l.life, Waves: len(values), What: m.what,
				First: values[0], Last: values[len(values)-1], Grows: Grows(values),
			})
		}
	}
	return trends
}

// Grows reports whether values rise in every quarter of their time: the lower quartile of each
// quarter is above the upper quartile of the previous one. A pool that fills up stops growing, and a
// leak does not. Fewer than eight values never grow.
func Grows(values []int) bool {
	if len(values) < enough {
		return false
	}
	before := 0
	for q := range 4 {
		quarter := slices.Sorted(slices.Values(values[q*len(values)/4 : (q+1)*len(values)/4]))
		if q > 0 && quantile.Of(quarter, 0.25) <= before {
			return false
		}
		before = quantile.Of(quarter, 0.75)
	}
	return true
}
