package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/product"
)

// targetTimeout of one request, as in a rush.
const targetTimeout = 35 * time.Second

// checkTarget reads the flags of a run at a service that runs already.
func (o *verifyOptions) checkTarget(c *cobra.Command) (faults []promise.Condition, err error) {
	for _, flag := range []string{"engine", "local-db", "quick", "race", "history", "lanes", "repeat"} {
		if c.Flags().Changed(flag) {
			return nil, fmt.Errorf("--target names a service that runs already: --%s has no meaning there", flag)
		}
	}
	if o.target, err = targetURL(o.target); err != nil {
		return nil, err
	}
	if err := product.CheckName(o.product); err != nil {
		return nil, fmt.Errorf("--product %w", err)
	}
	if len(o.strategies) == 0 || slices.Contains(o.strategies, "") || slices.Contains(o.strategies, "all") && len(o.strategies) > 1 {
		return nil, errors.New("--strategy has an empty name, or all and more; give a,b,... or all")
	}
	for i, name := range o.strategies {
		if slices.Contains(o.strategies[:i], name) { // one row would hide the other
			return nil, fmt.Errorf("--strategy has %s twice", name)
		}
	}
	faults, err = chooseFaults(o.faults, promise.OfTarget())
	if err != nil || !o.noKeys {
		return faults, err
	}
	if slices.Contains(o.faults, string(promise.Duplicates)) {
		return nil, fmt.Errorf("--fault %s sends requests twice under an Idempotency-Key, and --no-idempotency-keys says that the target has none; leave one of them out", promise.Duplicates)
	}
	return slices.DeleteFunc(faults, func(f promise.Condition) bool { return f == promise.Duplicates }), nil
}

// targetURL is an address without a slash at its end.
func targetURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("--target is %q; give http://host:port", text)
	}
	return strings.TrimSuffix(text, "/"), nil
}

// atTarget plays all cells at a service that runs already, one after the other.
func (o *verifyOptions) atTarget(c *cobra.Command, faults []promise.Condition, p *progress) (verify.Report, error) {
	report := verify.Report{Engine: "target", Target: o.target, Started: time.Now()}
	token := os.Getenv("SHOP_ADMIN_TOKEN")
	crowd := &trial.Crowd{Strategies: o.strategies, Target: o.target, Processes: 1}
	bed, err := trial.Open(c.Context(), crowd, engine.Config{}, token, nil)
	if err != nil {
		return report, err
	}
	names, err := crowd.Names(bed)
	if err != nil {
		return report, err
	}
	target := &verify.Target{
		Target:  rush.Target{BaseURL: o.target, Token: token},
		Product: o.product, Timeout: targetTimeout,
	}
	if err := target.Check(c.Context()); err != nil {
		return report, err
	}
	if o.noKeys {
		report.LeaveOut(string(promise.Duplicates) + ": the target does not claim to know Idempotency-Keys (--no-idempotency-keys)")
	}
	ended := o.ended(c, p)
	for _, name := range names {
		for _, f := range faults {
			cell, err := target.Play(c.Context(), name, f, crowd.TargetPromise(bed, name, f))
			if err != nil {
				report.Finish()
				return report, fmt.Errorf("%s under %s: %w", name, f, err)
			}
			report.Cells = append(report.Cells, cell)
			ended(cell, report)
			p.show("%d of %s", len(report.Cells), explore.Count(len(names)*len(faults), "cell"))
		}
	}
	if slices.Contains(o.strategies, "all") {
		for _, served := range bed.Served {
			if why := bed.Missing[served.Name]; why != "" {
				report.LeaveOut(served.Name + ": " + why)
			}
		}
	}
	report.Finish()
	return report, nil
}
