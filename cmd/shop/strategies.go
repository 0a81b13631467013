package main

import (
	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/nearest"
)

func strategiesCommand() *cobra.Command {
	var o output
	c := &cobra.Command{
		Use:   "strategies",
		Short: "List the lock strategies: what each does and when it breaks",
		Example: `  shop strategies
  shop strategies --report strategies.html`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.write(c, trial.Catalogue(), trial.PrintCatalogue)
		},
	}
	o.register(c)
	setHelp(c, "docs/guides/choose-a-strategy.md")
	return c
}

// unknownStrategy returns the error for a strategy that is not in the catalogue.
func unknownStrategy(name string) error {
	return nearest.Unknown("strategy", name, lockstrategy.Names(), "shop strategies")
}
