package verify

import (
	"fmt"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// job is a cell that is to be played.
type job struct {
	strategy Strategy
	name     promise.Condition
	fault    fault.Fault // zero for a rush

	play, plays int // which of how many; both 0 when there is one
}

// jobs are the cells in the order of the matrix; a fault that a strategy has no
// server for is no cell.
func (c Config) jobs() (all []job) {
	faults := map[promise.Condition]fault.Fault{}
	for _, f := range fault.All() {
		faults[f.Name] = f
	}
	for _, s := range c.Strategies {
		for _, name := range c.Faults {
			if c.needs(name) == "" && lockstrategy.Strikes(name, s.Needs) {
				all = append(all, job{strategy: s, name: name, fault: faults[name]})
			}
		}
	}
	return all
}

// needs is the flag with which the condition can be played; "" where it can be as it is.
func (c Config) needs(f promise.Condition) string {
	if on := promise.On(f); on != "" && on != c.database() {
		return "--local-db " + on
	}
	if on := promise.OnRedis(f); on != "" && on != c.LocalRedis {
		return "--local-redis " + on
	}
	return ""
}

// database is the dialect.
func (c Config) database() string {
	server, err := localserver.DatabaseNamed(c.LocalDB)
	if err != nil {
		return "" // as StartServers will say
	}
	return dialect.Kind(server.Database)
}

// file is the name of the cell's history.
func (j job) file() string {
	if j.plays == 0 {
		return string(j.name) + ".ndjson"
	}
	return fmt.Sprintf("%s-%03d.ndjson", j.name, j.play+1)
}

// productOf a cell is its own.
func productOf(j job) string { return fmt.Sprintf("verify-%s-%s", j.strategy.Name, j.name) }
