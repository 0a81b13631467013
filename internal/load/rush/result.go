package rush

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/quantile"
	"github.com/oversell/oversell/internal/plural"
	"github.com/oversell/oversell/internal/purchase"
)

// A Result is the result of one rush (burst of buyers), and a row of the table. Its times are those of the
// burst. Its counts also include the buyers after the burst.
type Result struct {
	Strategy   string `json:"strategy"`
	Leftover   int64  `json:"leftover"`
	Records    int64  `json:"records"`
	UnitsSold  int64  `json:"units_sold"`
	Oversold   int64  `json:"oversold"`
	Drift      int64  `json:"drift"`
	Duplicates int64  `json:"duplicates"`
	Lost       int64  `json:"lost"`   // acknowledged sales without a record
	Untold     int64  `json:"untold"` // records of refused buyers, and second records of a buyer
	Outcomes
	P50MS      float64         `json:"p50_ms"`
	P99MS      float64         `json:"p99_ms"`
	DurationMS float64         `json:"duration_ms"` // time from the start to the last answer
	PerSecond  float64         `json:"per_second"`  // sales per second, from the start to the last sale
	MaxOverlap int             `json:"max_overlap"` // maximum number of purchases inside the shop at once; in flight at once if the service does not report that
	Verdict    verdict.Verdict `json:"verdict"`
	Promise    verdict.Verdict `json:"promise"` // "" if the catalogue has no promise
	Reason     string          `json:"reason"`  // reason of the verdict, in one sentence

	Waves *Waves `json:"waves,omitempty"` // counts of a long rush with several bursts; nil for a single one

	BreaksUnder []string `json:"breaks_under,omitempty"` // conditions under which the catalogue promises a break

	Audited audit.Sums `json:"-"` // the audit that the verdict used
	Crowd   int        `json:"-"` // buyers of the burst, without those after it
	Taken   int        `json:"-"` // buyers of the burst that a fault left without an answer

	// FirstError describes the first answer other than sold and sold out.
	FirstError string `json:"-"`

	neverReturns bool  // a purchase is still inside the shop long after the buyer's maximum wait
	isUnique     bool  // the burst cannot be repeated under the same conditions
	unserved     int64 // buyers neither served nor refused, if there was no fault
}

// Outcomes counts answers.
type Outcomes struct {
	Sold     int64 `json:"sold"`
	SoldOut  int64 `json:"sold_out"`
	Busy     int64 `json:"busy"`
	LockLost int64 `json:"lock_lost"`
	Unknown  int64 `json:"unknown"`
	Failed   int64 `json:"failed"`
	Returned int64 `json:"returned,omitempty"` // how often buyers asked again after Retry-After
}

func (o *Outcomes) add(other Outcomes) {
	o.Sold += other.Sold
	o.SoldOut += other.SoldOut
	o.Busy += other.Busy
	o.LockLost += other.LockLost
	o.Unknown += other.Unknown
	o.Failed += other.Failed
	o.Returned += other.Returned
}

// result returns the row of a burst. It has no verdict yet.
func result(strategy string, crowd []buyers.Answer, audited audit.Sums) Result {
	r := Result{
		Strategy: strategy, Audited: audited, Crowd: len(crowd),
		Leftover: audited.Leftover, Records: audited.Records, UnitsSold: audited.UnitsSold,
		Oversold: audited.Oversold, Drift: audited.Drift, Duplicates: audited.Duplicates,
	}
	r.count(crowd)
	r.time(crowd)
	return r
}

func (r *Result) count(answers []buyers.Answer) {
	for _, a := range answers {
		r.Returned += int64(a.Returns)
		switch a.Outcome {
		case purchase.Sold:
			r.Sold++
		case purchase.SoldOut:
			r.SoldOut++
		case purchase.Busy:
			r.Busy++
		case purchase.LockLost:
			r.LockLost++
		case purchase.Unknown:
			r.Unknown++
		case purchase.Failed:
			r.Failed++
		}
		if r.FirstError == "" && a.Outcome != purchase.Sold && a.Outcome != purchase.SoldOut {
			r.FirstError = a.Detail
		}
	}
}

// time sets the times of a burst. It needs the numbers that count has set.
func (r *Result) time(crowd []buyers.Answer) {
	latencies := make([]time.Duration, 0, len(crowd))
	var start, end, lastSale time.Time
	for _, a := range crowd {
		came := cmp.Or(a.First, a.Start)
		latencies = append(latencies, a.End.Sub(came))
		if start.IsZero() || came.Before(start) {
			start = came
		}
		if a.End.After(end) {
			end = a.End
		}
		if a.Outcome == purchase.Sold && a.End.After(lastSale) {
			lastSale = a.End
		}
	}
	slices.Sort(latencies)
	r.P50MS, r.P99MS = milliseconds(quantile.Of(latencies, 0.5)), milliseconds(quantile.Of(latencies, 0.99))
	r.DurationMS = milliseconds(end.Sub(start))
	if took := lastSale.Sub(start).Seconds(); took > 0 {
		r.PerSecond = math.Round(float64(r.Sold)/took*1000) / 1000
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// judge sets the verdict. `demand` is the number of units that the burst asked for. `answers` contains the
// answers of the burst and of the buyers after it. After a fault it contains only those of the last burst,
// since the fault may have taken other answers. `unharmed` means that there was no fault.
func (r *Result) judge(c Config, demand int64, answers []buyers.Answer, p audit.Progress, unharmed bool) {
	e := audit.Evidence{
		IsHealthy: c.Healthy && unharmed, LetsWait: c.LetsWait && unharmed,
		Sums: r.Audited, Demand: demand, MaxOverlap: r.MaxOverlap, Lost: r.Lost, Untold: r.Untold, Progress: p,
	}
	e.Count(buyers.Answers(answers))
	r.unserved = e.Unanswered + e.Failed
	r.Verdict, r.Reason = audit.Judge(e)
}

// interrupted adds two numbers to the reason: buyers that a fault left without an answer, and buyers after them.
func (r *Result) interrupted(crowd []buyers.Answer, after int) {
	for _, a := range crowd {
		if a.Outcome == purchase.Unknown || a.Outcome == purchase.Failed {
			r.Taken++
		}
	}
	r.Reason += fmt.Sprintf("; the fault left %d without an answer, and %s asked for the rest", r.Taken, plural.Count(after, "buyer"))
}

// LeftBehind reports whether the strategy left a lock or a running purchase behind. Its shop and database then
// cannot be used for another strategy.
func (r Result) LeftBehind() bool { return r.neverReturns || r.Verdict == verdict.LeakedLock }

// oneByOne reports whether a burst showed nothing because no two of its buys overlapped.
func (r Result) oneByOne() bool { return r.Verdict == verdict.Inconclusive && r.MaxOverlap < 2 }

// Judged implements verdict.Play.
func (r *Result) Judged() (promise, got verdict.Verdict) { return r.Promise, r.Verdict }

// Disturbed implements verdict.Play. A busy machine may serve buyers one after the other, which proves nothing.
func (r *Result) Disturbed() string {
	if r.oneByOne() && r.Crowd > 1 && !r.isUnique {
		return "no two buys were in flight at once"
	}
	return ""
}

// IsTimed implements verdict.Play. A stall depends on timing, since the machine may have stopped for seconds.
func (r *Result) IsTimed() bool {
	return r.Verdict == verdict.Stalled && !r.neverReturns && !r.isUnique
}

// Doubt implements verdict.Play.
func (r *Result) Doubt(reason string) { r.Verdict, r.Reason = verdict.Inconclusive, reason+r.Reason }

// Played implements verdict.Play. It adds how often the rush was run, and why, unless the reason says so already.
func (r *Result) Played(times int, because string) {
	known := strings.Contains(r.Reason, because)
	r.Reason += fmt.Sprintf("; played %d times", times)
	if !known {
		r.Reason += ", because " + because
	}
}

// Contradictions describes the results that are not as promised (`broken`). `void` lists the strategies whose
// result is inconclusive.
func Contradictions(results []Result) (broken, void []string) {
	for _, r := range results {
		switch {
		case r.Verdict == verdict.Inconclusive:
			void = append(void, r.Strategy)
		case r.Promise != "" && !r.Promise.Keeps(r.Verdict):
			broken = append(broken, fmt.Sprintf("%s: promised %s, seen %s", r.Strategy, r.Promise, r.Verdict))
		}
	}
	return broken, void
}
