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

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
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
	crowd := rushOptions{strategies: o.strategies, target: o.target, processes: 1}
	bed, err := crowd.storefront(c)
	if err != nil {
		return report, err
	}
	names, err := crowd.names(bed)
	if err != nil {
		return report, err
	}
	target := &verify.Target{
		Target:  rush.Target{BaseURL: o.target, Token: os.Getenv("SHOP_ADMIN_TOKEN")},
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
			cell, err := target.Play(c.Context(), name, f, crowd.targetPromise(bed, name, f))
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
		for _, served := range bed.served {
			if why := bed.missing[served.Name]; why != "" {
				report.LeaveOut(served.Name + ": " + why)
			}
		}
	}
	report.Finish()
	return report, nil
}

// targetPromise: the target's own word goes first. The catalogue's strategies
// are promised under the other faults what they are in a rush, since it is one,
// and the catalogue's own cells have two processes; what breaks in a rush may
// break there or not. Of a strategy that neither knows it is expected that it
// holds.
func (o *rushOptions) targetPromise(s *storefront, name string, f promise.Condition) verdict.Verdict {
	if _, ours := lockstrategy.ByName(lockstrategy.Resolve(name)); !ours {
		for _, served := range s.served {
			if promised := served.Promise[string(f)]; served.Name == name && promised != "" {
				return promised
			}
		}
	}
	promised := o.promise(s, name)
	if f != promise.Rush && promised != verdict.Holds {
		return ""
	}
	return promised
}
