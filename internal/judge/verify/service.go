package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/plural"
)

// A Service is a shop that already runs, reached over HTTP. The verdicts depend only on its answers.
type Service struct {
	URL        string
	Token      string   // token for the service's admin routes
	Product    string   // the product that the buyers order
	Strategies []string // the service's own names, or "all"
	NoKeys     bool     // the service does not support Idempotency-Keys
}

// serviceTimeout limits one request to the service.
const serviceTimeout = 35 * time.Second

// At runs all cells (strategies under one condition) at a service, one after the other. After an error it
// returns the cells that are complete. The rows of the report are the service's own strategies.
func (c Config) At(ctx context.Context, s Service) (Report, error) {
	report := Report{Engine: "target", Target: s.URL, Command: c.Command, Started: time.Now()}
	crowd := &trial.Crowd{Strategies: s.Strategies, Target: s.URL, Processes: 1}
	bed, err := trial.Open(ctx, crowd, engine.Config{}, s.Token, nil)
	if err != nil {
		return report, err
	}
	names, err := crowd.Names(bed)
	if err != nil {
		return report, err
	}
	target := &Target{
		Target:  rush.Target{BaseURL: s.URL, Token: s.Token},
		Product: s.Product, Timeout: serviceTimeout,
	}
	if err := target.Check(ctx); err != nil {
		return report, err
	}
	if s.NoKeys {
		report.LeaveOut(string(promise.Duplicates) + ": the target does not claim to know Idempotency-Keys (--no-idempotency-keys)")
	}
	for _, name := range names {
		for _, f := range c.Faults {
			cell, err := target.Play(ctx, name, f, crowd.TargetPromise(bed, name, f))
			if err != nil {
				report.Finish()
				return report, fmt.Errorf("%s under %s: %w", name, f, err)
			}
			report.Cells = append(report.Cells, cell)
			c.Ended(cell, report)
			c.Progress("%d of %s", len(report.Cells), plural.Count(len(names)*len(c.Faults), "cell"))
		}
	}
	if slices.Contains(s.Strategies, "all") {
		for _, served := range bed.Served {
			if why := bed.Missing[served.Name]; why != "" {
				report.LeaveOut(served.Name + ": " + why)
			}
		}
	}
	report.Finish()
	return report, nil
}
