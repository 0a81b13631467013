package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/teach/play/level"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// flagValues maps the name of a flag to the values that a shell can complete.
func flagValues() map[string][]string {
	return map[string][]string{
		"strategy":    append(lockstrategy.Names(), "all"),
		"fault":       append(texts(promise.Columns()), "all"),
		"strike":      trial.FaultNames(fault.OfRush()),
		"events":      append(texts(explore.Events(false)), "all"),
		"engine":      {engine.Embedded, engine.Local},
		"local-db":    localserver.DatabaseNames(),
		"local-redis": localserver.RedisNames(),
		"level":       level.Names(),
		"before":      texts(own.Fronts()),
		"format":      witness.FormatNames(),
		"instances":   {"own", "shared"},
		"language":    {"go", "node", "python"},
		"log-level":   {"debug", "info", "warn", "error"},
		admission:     {adaptive, noAdmission},
	}
}

// completeFlags registers the values of the flags of c and of its subcommands for completion.
func completeFlags(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		_ = c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, given string) ([]string, cobra.ShellCompDirective) {
			known := flagValues()[f.Name]
			if known == nil {
				return nil, cobra.ShellCompDirectiveDefault
			}
			if _, list := f.Value.(pflag.SliceValue); !list {
				return matching(known, given), cobra.ShellCompDirectiveNoFileComp
			}
			before := given[:strings.LastIndex(given, ",")+1]
			var lists []string
			for _, v := range known {
				if !slices.Contains(strings.Split(before, ","), v) {
					lists = append(lists, before+v)
				}
			}
			return matching(lists, given), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}) // fails only for an unknown flag
	})
	for _, sub := range c.Commands() {
		completeFlags(sub)
	}
}

// completeFirst returns a completion of the first argument of a command.
func completeFirst(values func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return matching(values(), given), cobra.ShellCompDirectiveNoFileComp
	}
}

func matching(values []string, given string) []string {
	return slices.DeleteFunc(values, func(v string) bool { return !strings.HasPrefix(v, given) })
}

func texts[K ~string](names []K) (all []string) {
	for _, name := range names {
		all = append(all, string(name))
	}
	return all
}
