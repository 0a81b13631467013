package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/product"
)

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
