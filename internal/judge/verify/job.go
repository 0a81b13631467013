package verify

import (
	"cmp"
	"fmt"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

type job struct {
	strategy Strategy
	name     promise.Condition
	fault    fault.Fault // the zero value if the condition is a rush (a burst of buyers without a fault)

	play, plays int // number of this run of the cell, and of all its runs; both 0 if there is only one
}

// jobs returns the cells of the matrix, in its order. There is no cell for a fault that cannot affect the strategy.
func (c Config) jobs() (all []job) {
	faults := map[promise.Condition]fault.Fault{}
	for _, f := range fault.All() {
		faults[f.Name] = f
	}
	for _, s := range c.Strategies {
		for _, name := range c.Faults {
			if c.needs(name) == "" && lockstrategy.Affects(name, s.Needs) {
				all = append(all, job{strategy: s, name: name, fault: faults[name]})
			}
		}
	}
	return all
}

// needs returns the flag of shop verify that the condition requires, or "".
func (c Config) needs(f promise.Condition) string {
	if on := promise.On(f); on != "" && on != c.database() {
		return "--local-db " + on
	}
	if on := promise.OnRedis(f); on != "" && on != cmp.Or(c.LocalRedis, topology.Single) {
		return "--local-redis " + on
	}
	return ""
}

func (c Config) database() string {
	server, err := localserver.DatabaseNamed(c.LocalDB)
	if err != nil {
		return "" // StartServers will report the same error
	}
	return dialect.Kind(server.Database)
}

func (j job) file() string {
	if j.plays == 0 {
		return string(j.name) + ".ndjson"
	}
	return fmt.Sprintf("%s-%03d.ndjson", j.name, j.play+1)
}

// productOf returns the name of the product that a cell sells. No other cell uses it.
func productOf(j job) string { return fmt.Sprintf("verify-%s-%s", j.strategy.Name, j.name) }
