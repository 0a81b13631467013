package lockstrategy

import (
	"strings"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// Breaks returns the conditions, such as faults, that break the strategy on a database, in display order.
// It leaves out conditions that break every strategy. The parameter `database` is a name as in
// engine.Engine.Database.
func (e Entry) Breaks(database string) (breaks []promise.Condition) {
	for _, c := range promise.Played() {
		if v := e.Promised(c, database); v != "" && v != verdict.Holds && !promise.BreaksAll(c) {
			breaks = append(breaks, c)
		}
	}
	return breaks
}

// Safety returns a table cell that says whether the strategy keeps the stock right on a database:
//
//   - "safe", if no condition breaks it
//   - "not safe: pause", with the first condition that breaks it
//   - "safe in a rush", if no fault was injected on the database at this isolation level
//   - "no promise", if the catalogue makes none for two processes. If no fault was injected at this
//     isolation level, a fault that breaks the strategy at the default level has the same result
func (e Entry) Safety(database string) string {
	breaks := e.Breaks(database)
	if event, _ := BrokenBy(e, database); event != "" {
		breaks = append(breaks, event)
	}
	switch {
	case len(breaks) > 0:
		return "not safe: " + strings.TrimPrefix(string(breaks[0]), "explore-")
	case e.Promised(promise.TwoProcesses, database) == "":
		return "no promise"
	case e.Promised(promise.Crash, database) != "":
		return "safe"
	case len(e.Breaks(dialect.Kind(database))) > 0:
		return "no promise"
	}
	return "safe in a rush"
}
