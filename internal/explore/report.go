package explore

import "fmt"

// A Report is a search's result as `shop explore --json` prints it.
type Report struct {
	Strategy   string   `json:"strategy"`
	Engine     string   `json:"engine"`
	Buyers     int      `json:"buyers"`
	Stock      int64    `json:"stock"`
	Events     []Event  `json:"events"`
	Bound      *int     `json:"bound"`   // null: none
	Reduced    bool     `json:"reduced"` // one schedule of each class
	Shared     bool     `json:"shared"`  // all buyers in one process
	Explored   int      `json:"explored"`
	Total      *int     `json:"total"` // null: not known, the search is not complete
	Complete   bool     `json:"complete"`
	Cut        int      `json:"cut"`        // schedules given up since they went round in circles
	Alike      bool     `json:"alike"`      // of buyers who have not begun only the first begins
	Within     *int     `json:"within"`     // all schedules of so many preemptions were explored; null: not known
	Overlap    bool     `json:"overlap"`    // commands were let go together
	Overlapped int      `json:"overlapped"` // the schedules in which that was so
	Missed     int      `json:"missed"`     // ways that a server took once and not again
	Violations int      `json:"violations"`
	Seconds    float64  `json:"seconds"`
	PerSecond  float64  `json:"per_second"`
	Witness    *Witness `json:"witness"`

	Foreign        int      `json:"foreign_unlocks"` // schedules in which a buyer freed another's lock
	ForeignWitness *Witness `json:"foreign_unlock_witness"`

	exploredWithin int
}

// NewReport says what c was and r is.
func NewReport(c Config, r Result) Report {
	report := Report{
		Strategy: c.Strategy.Name, Engine: c.Engine.Name, Buyers: c.Buyers, Stock: c.Stock, Events: c.Events,
		Reduced: r.Reduced, Shared: c.Shared, Explored: r.Explored, Complete: r.Complete, Cut: r.Cut,
		Violations: r.Violations, Seconds: r.Seconds, Witness: r.Witness,
		Alike: c.Alike, Overlap: c.Overlap, Overlapped: r.Overlapped, Missed: r.Missed, exploredWithin: r.ExploredWithin,
		Foreign: r.Foreign, ForeignWitness: r.ForeignWitness,
	}
	if report.Events == nil {
		report.Events = []Event{}
	}
	if c.Bound >= 0 {
		report.Bound = &c.Bound
	}
	if r.Within >= 0 {
		report.Within = &r.Within
	}
	if r.Complete && !c.Overlap {
		report.Total = &report.Explored
	}
	if r.Seconds > 0 {
		report.PerSecond = float64(r.Explored) / r.Seconds
	}
	return report
}

// Extent is how much was explored, in words that claim no more: "N of N" only
// where nothing was left out.
func (r Report) Extent() string {
	schedules := fmt.Sprintf("%d schedules", r.Explored)
	if r.Alike {
		schedules += " (buyers alike)"
	}
	var text string
	switch {
	case r.Overlap:
		text = fmt.Sprintf("explored %s, %d of them with commands let go together, whose order the server decides: not all that can happen", schedules, r.Overlapped)
	case !r.Complete:
		text = "explored " + schedules
	case r.Bound != nil:
		text = fmt.Sprintf("explored all %s of at most %s (bound %d)", schedules, preemptions(*r.Bound), *r.Bound)
	case r.Reduced:
		text = "explored " + schedules + ", one of each class that no server can tell apart (reduced)"
	case r.Alike:
		text = "explored all " + schedules
	default:
		text = fmt.Sprintf("explored %d of %s", r.Explored, schedules)
	}
	if !r.Complete && r.Within != nil {
		text += fmt.Sprintf(", among them all of at most %s (%d)", preemptions(*r.Within), r.exploredWithin)
	}
	if r.Missed > 0 {
		text += fmt.Sprintf("; %d times it did not go again as it had gone once", r.Missed)
	}
	switch {
	case r.Cut > 0:
		text += fmt.Sprintf("; %d more went round in circles and were given up: not complete", r.Cut)
	case !r.Complete:
		text += "; there are more: not complete"
	}
	return text
}

func preemptions(n int) string {
	if n == 1 {
		return "1 preemption"
	}
	return fmt.Sprintf("%d preemptions", n)
}
