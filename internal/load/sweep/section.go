package sweep

import (
	"context"
	"fmt"
	"math"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/load/measure"
)

// A Section describes the critical section of a strategy with a lease, including the release of the lock. It covers
// all sales of the last 10 minutes, so it mixes the measured numbers of clients. With several processes, each figure is that of the slowest one.
//
// One of the articles in docs/reference/articles.md advises a lease of three to five times the mean duration
// of the section ("set the lock's timeout correctly"). A section that outlasts its lease can oversell, so this
// package uses p99.9 instead of the mean.
type Section struct {
	Strategy    string  `json:"strategy"`
	P50MS       float64 `json:"p50_ms"`
	P99MS       float64 `json:"p99_ms"`
	P999MS      float64 `json:"p99_9_ms"`
	LeaseFromMS int     `json:"lease_from_ms"` // three times P999MS
	LeaseToMS   int     `json:"lease_to_ms"`   // five times P999MS
}

func sectionOf(ctx context.Context, urls []string, strategy string) (Section, error) {
	s := Section{Strategy: strategy}
	for _, url := range urls {
		text := measure.Metrics(ctx, url)
		for quantile, figure := range map[string]*float64{"0.5": &s.P50MS, "0.99": &s.P99MS, "0.999": &s.P999MS} {
			seconds := measure.Metric(text, fmt.Sprintf("shop_section_seconds{strategy=%q,quantile=%q}", strategy, quantile))
			if ms := math.Round(seconds*1e6) / 1e3; ms > *figure { // false for NaN, which means that there was no sale in the last 10 minutes
				*figure = ms
			}
		}
	}
	if s.P999MS == 0 {
		return s, fmt.Errorf("%s: the shop's metrics have no shop_section_seconds: no buyer was sold a unit", strategy)
	}
	s.LeaseFromMS, s.LeaseToMS = int(math.Ceil(3*s.P999MS)), int(math.Ceil(5*s.P999MS))
	return s, nil
}

func (r Result) sectionTable() report.Table {
	t := report.Table{Columns: []report.Column{{Name: "Critical section, ms"}}}
	for _, name := range []string{"p50", "p99", "p99.9", "lease, 3 to 5 × p99.9"} {
		t.Columns = append(t.Columns, report.Column{Name: name, Numbers: true})
	}
	for _, s := range r.Sections {
		ms := func(figure float64) string { return fmt.Sprintf("%.2f", figure) }
		t.Rows = append(t.Rows, report.Row(r.label(s.Strategy), ms(s.P50MS), ms(s.P99MS), ms(s.P999MS), fmt.Sprintf("%d to %d", s.LeaseFromMS, s.LeaseToMS)))
	}
	return t
}
