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
	fault    fault.Fault // zero if the condition is a rush

	play, plays int // number of this play, and of all plays; both 0 if there is only one
}

// jobs returns the cells in the order of the matrix. A fault that does not affect a strategy gives
// no cell.
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

// needs returns the flag that the condition requires, or "".
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
		return "" // StartServers will report the error
	}
	return dialect.Kind(server.Database)
}

func (j job) file() string {
	if j.plays == 0 {
		return string(j.name) + ".ndjson"
	}
	return fmt.Sprintf("%s-%03d.ndjson", j.name, j.play+1)
}

// productOf returns the product of a cell, which no other cell uses.
func productOf(j job) string { return fmt.Sprintf("verify-%s-%s", j.strategy.Name, j.name) }
