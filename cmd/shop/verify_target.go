package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/product"
)

func (o *verifyOptions) checkTarget(c *cobra.Command) (faults []promise.Condition, err error) {
	if err := rejectFlags(c, notWithTarget, "engine", "local-db", "quick", "history", "lanes", "lease", "redlock-nodes", "repeat"); err != nil {
		return nil, err
	}
	if o.target, err = trial.ServiceURL("target", o.target); err != nil {
		return nil, err
	}
	if err := product.CheckName(o.product); err != nil {
		return nil, fmt.Errorf("--product %w", err)
	}
	if len(o.strategies) == 0 || slices.Contains(o.strategies, "") || slices.Contains(o.strategies, "all") && len(o.strategies) > 1 {
		return nil, fmt.Errorf("--strategy needs names, or all alone (got %q)", strings.Join(o.strategies, ","))
	}
	for i, name := range o.strategies {
		if slices.Contains(o.strategies[:i], name) { // two rows with one name could not be told apart
			return nil, fmt.Errorf("--strategy names %s twice", name)
		}
	}
	faults, err = choose("fault", o.faults, promise.OfTarget(), "shop help faults")
	if err != nil || !o.noKeys {
		return faults, err
	}
	if slices.Contains(o.faults, string(promise.Duplicates)) {
		return nil, fmt.Errorf("--fault %s cannot be combined with --no-idempotency-keys: it sends requests twice with an Idempotency-Key", promise.Duplicates)
	}
	return slices.DeleteFunc(faults, func(f promise.Condition) bool { return f == promise.Duplicates }), nil
}
