package trial

import (
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
)

// OneOfEachFamily returns the first suitable strategy of each family. It must run on this engine, and promise
// to hold with this number of processes, also if a process crashes.
func OneOfEachFamily(e *engine.Engine, processes int) (names []string) {
	missing := lockstrategy.AllMissing(onengine.Deps(e))
	have := map[string]bool{}
	crowd := promise.Rush
	if processes > 1 {
		crowd = promise.TwoProcesses
	}
	for _, entry := range lockstrategy.All() {
		holds := entry.Promised(crowd, e.Database) == verdict.Holds && entry.Promised(promise.Crash, e.Database) == verdict.Holds
		if missing[entry.Name] == "" && holds && !have[entry.Family] {
			have[entry.Family] = true
			names = append(names, entry.Name)
		}
	}
	return names
}
