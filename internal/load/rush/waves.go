package rush

import (
	"cmp"
	"fmt"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// Waves counts the waves of a long rush for one strategy. A wave is one burst.
type Waves struct {
	All          int `json:"all"`
	Broke        int `json:"broke"` // number of waves with a break, promised or not
	Inconclusive int `json:"inconclusive"`
}

// AddWave adds a wave of a long rush, with its name, to the row of its strategy. The row has the sums of the
// counts, the longest times, and the verdict of the worst wave.
func (r *Report) AddWave(name string, wave Result) {
	wave.Reason = name + ": " + wave.Reason
	wave.Waves = &Waves{All: 1}
	switch {
	case wave.Verdict == verdict.Inconclusive:
		wave.Waves.Inconclusive = 1
	case wave.Verdict.IsBreak():
		wave.Waves.Broke = 1
	}
	for i := range r.Results {
		if r.Results[i].Strategy == wave.Strategy {
			r.Results[i].plus(wave)
			return
		}
	}
	r.Results = append(r.Results, wave)
}

func (x *Result) plus(wave Result) {
	selling := x.selling() + wave.selling()
	if wave.weight() > x.weight() {
		x.Verdict, x.Promise, x.Reason = wave.Verdict, wave.Promise, wave.Reason
	}
	x.FirstError = cmp.Or(x.FirstError, wave.FirstError)
	x.Waves.All += wave.Waves.All
	x.Waves.Broke += wave.Waves.Broke
	x.Waves.Inconclusive += wave.Waves.Inconclusive
	x.Leftover += wave.Leftover
	x.Records += wave.Records
	x.UnitsSold += wave.UnitsSold
	x.Oversold += wave.Oversold
	x.Drift += wave.Drift
	x.Duplicates += wave.Duplicates
	x.Lost += wave.Lost
	x.Untold += wave.Untold
	x.add(wave.Outcomes)
	x.P50MS, x.P99MS = max(x.P50MS, wave.P50MS), max(x.P99MS, wave.P99MS)
	x.DurationMS += wave.DurationMS
	x.MaxOverlap = max(x.MaxOverlap, wave.MaxOverlap)
	if selling > 0 {
		x.PerSecond = float64(x.Sold) / selling
	}
}

// selling returns the seconds from the start to the last sale, as a sum over all waves of the row.
func (x Result) selling() float64 {
	if x.PerSecond == 0 {
		return 0
	}
	return float64(x.Sold) / x.PerSecond
}

// weight says how bad a wave is: a broken promise weighs most, then another break, then a wave that proved nothing.
func (x Result) weight() int {
	switch {
	case x.BreaksPromise():
		return 3
	case x.Verdict.IsBreak():
		return 2
	case x.Verdict == verdict.Inconclusive:
		return 1
	}
	return 0
}

// BreaksPromise reports whether a break was seen that the catalogue does not promise.
func (x Result) BreaksPromise() bool {
	return x.Verdict.IsBreak() && x.Promise != "" && !x.Promise.Keeps(x.Verdict)
}

// String returns the counts as one line of text.
func (w Waves) String() string {
	text := fmt.Sprintf("%d of %d waves hold", w.All-w.Broke-w.Inconclusive, w.All)
	if w.Broke > 0 {
		text += fmt.Sprintf(", %d broke", w.Broke)
	}
	if w.Inconclusive > 0 {
		text += fmt.Sprintf(", %d proved nothing", w.Inconclusive)
	}
	return text
}
