package soak

import (
	"slices"

	"github.com/oversell/oversell/internal/load/quantile"
)

// A Rest is what a process used when nobody asked, after an audit.
type Rest struct {
	Wave    int `json:"wave"`
	Process int `json:"process"`
	Life    int `json:"life"` // 0 for the first process, 1 for the one that was started when it was killed, ...
	Use
}

// A Trend is what a process used at rest after its first wave and after its last one.
type Trend struct {
	Process int    `json:"process"`
	Life    int    `json:"life"`
	Waves   int    `json:"waves"`
	What    string `json:"what"` // goroutines or descriptors
	First   int    `json:"first"`
	Last    int    `json:"last"`
	Grows   bool   `json:"grows"`
}

// enough is how many samples a trend takes: two in each quarter.
const enough = 8

// Trends reads them from the samples at rest, in their order. A process that was killed and
// the one in its place are two.
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

// Grows tells whether values have grown in each quarter of their time: the lower quartile
// of each quarter is above the upper quartile of the one before. A pool that fills up stops
// growing; a leak does not. Fewer than eight values show nothing.
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
