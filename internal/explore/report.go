package explore

import "fmt"

// A Report is a search's result as `shop explore --json` prints it.
type Report struct {
	Strategy   string   `json:"strategy"`
	Engine     string   `json:"engine"`
	Buyers     int      `json:"buyers"`
	Stock      int64    `json:"stock"`
	Events     []Event  `json:"events"`
	MaxEvents  *int     `json:"max_events"` // in one schedule; null: each may happen
	Bound      *int     `json:"bound"`      // null: none
	Reduced    bool     `json:"reduced"`    // one schedule of each class
	Shared     bool     `json:"shared"`     // all buyers in one process
	Explored   int      `json:"explored"`
	Total      *int     `json:"total"` // null: not known, the search is not complete
	Complete   bool     `json:"complete"`
	Cut        int      `json:"cut"` // schedules given up since they went round in circles
	Violations int      `json:"violations"`
	Seconds    float64  `json:"seconds"`
	PerSecond  float64  `json:"per_second"`
	Witness    *Witness `json:"witness"`

	Foreign        int      `json:"foreign_unlocks"` // schedules in which a buyer freed another's lock
	ForeignWitness *Witness `json:"foreign_unlock_witness"`
}

// NewReport says what c was and r is.
func NewReport(c Config, r Result) Report {
	report := Report{
		Strategy: c.Strategy.Name, Engine: c.Engine.Name, Buyers: c.Buyers, Stock: c.Stock, Events: c.Events,
		Reduced: r.Reduced, Shared: c.Shared, Explored: r.Explored, Complete: r.Complete, Cut: r.Cut,
		Violations: r.Violations, Seconds: r.Seconds, Witness: r.Witness,
		Foreign: r.Foreign, ForeignWitness: r.ForeignWitness,
	}
	if report.Events == nil {
		report.Events = []Event{}
	}
	if c.MaxEvents >= 0 && c.MaxEvents < len(c.Events) {
		report.MaxEvents = &c.MaxEvents
	}
	if c.Bound >= 0 {
		report.Bound = &c.Bound
	}
	if r.Complete {
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
	if r.Complete && r.MaxEvents != nil {
		return r.extentOfFew()
	}
	switch {
	case !r.Complete && r.Cut > 0:
		return fmt.Sprintf("explored %d schedules; %d more went round in circles and were given up: not complete", r.Explored, r.Cut)
	case !r.Complete:
		return fmt.Sprintf("explored %d schedules; there are more: not complete", r.Explored)
	case r.Bound != nil:
		return fmt.Sprintf("explored all %d schedules of at most %d preemptions (bound %d)", r.Explored, *r.Bound, *r.Bound)
	case r.Reduced:
		return fmt.Sprintf("explored %d schedules, one of each class that no server can tell apart (reduced)", r.Explored)
	}
	return fmt.Sprintf("explored %d of %d schedules", r.Explored, r.Explored)
}

// extentOfFew is Extent where not all events may happen in one schedule.
func (r Report) extentOfFew() string {
	text := fmt.Sprintf("explored all %d schedules of at most %d of the events", r.Explored, *r.MaxEvents)
	switch {
	case r.Bound != nil:
		text += fmt.Sprintf(" and %d preemptions (bound %d)", *r.Bound, *r.Bound)
	case r.Reduced:
		text += ", one of each class that no server can tell apart (reduced)"
	}
	return text
}
