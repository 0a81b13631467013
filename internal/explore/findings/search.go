// Package findings presents the result of a search on the terminal and in the files of --report.
package findings

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/plural"
)

// Of returns the result of a search for the formats of a witness.
func Of(r explore.Report) witness.Document {
	d := witness.Document{
		Head: fmt.Sprintf("%s%s: %s in %.1f s (%.0f/s), %s",
			subject(r), withEvents(r.Events), r.Extent(), r.Seconds, r.PerSecond, r.Broken()),
		Title:   fmt.Sprintf("shop explore %s%s", titled(r), withEvents(r.Events)),
		Notes:   r.Notes(),
		Extent:  r.Extent(),
		Summary: fmt.Sprintf("%s, %s.", r.Extent(), r.Broken()),
		Buyers:  r.Buyers,
		Data:    r,
	}
	if r.Witness != nil {
		d.Broken = witness.Found{Witness: r.Witness, Replay: r.Replay(r.Witness)}
	}
	if r.Foreign > 0 {
		known := ""
		if entry, _ := lockstrategy.ByName(r.Strategy); !entry.Lock.FreesAnothers {
			known = ", and only its holder should"
		}
		foreign := witness.Found{Intro: fmt.Sprintf("\nin %d schedules a buyer deletes the lock of another%s\n", r.Foreign, known), Witness: r.ForeignWitness}
		if r.ForeignWitness != nil {
			foreign.Replay = r.Replay(r.ForeignWitness)
		}
		d.Others = append(d.Others, foreign)
	}
	return d
}

func subject(r explore.Report) string {
	if ofProgram(r) {
		return fmt.Sprintf("%s on %s, %d buyers", r.Strategy, r.Server, r.Buyers)
	}
	return fmt.Sprintf("%s on %s%s, %s, stock %d%s%s", r.Strategy, r.Engine, server(r), crowd(r), r.Stock, inParts(r.Parts), withOrders(r))
}

// titled describes the explored strategy or program, for a title.
func titled(r explore.Report) string {
	if ofProgram(r) {
		return r.Strategy + " on " + r.Server
	}
	return r.Strategy + " on " + r.Engine
}

// ofProgram reports whether the search explored a program under test.
func ofProgram(r explore.Report) bool { return r.Engine == explore.AppEngine }

// server returns the name of an engine's database in parentheses; "" if the engine's name already contains it.
func server(r explore.Report) string {
	if r.Engine == engine.Embedded {
		return ""
	}
	return " (" + r.Server + ")"
}

// crowd describes the number of buyers and of processes, since a lock in memory works only in one process.
func crowd(r explore.Report) string {
	if r.Shared {
		return fmt.Sprintf("%d buyers in one process", r.Buyers)
	}
	return fmt.Sprintf("%d buyers, each a process of its own (--instances shared puts them in one)", r.Buyers)
}

func inParts(parts int64) string {
	if parts == 0 {
		return ""
	}
	return " in " + plural.Count(int(parts), "part")
}

// withOrders describes the units and the keys of the purchases, and the code before the strategy. It returns "" if
// each purchase has one unit and its own key, and nothing runs before the strategy.
func withOrders(r explore.Report) (text string) {
	switch {
	case r.Mixed != nil:
		text = fmt.Sprintf(", orders of %s units", r.Mixed)
	case r.Units != 1:
		text = fmt.Sprintf(", orders of %d units", r.Units)
	}
	if r.OneKey {
		text = cmp.Or(text, ", orders") + " under one Idempotency-Key"
	}
	if r.Before != "" {
		text += ", with " + string(r.Before) + " before the strategy"
	}
	return text
}

func withEvents(events []explore.Event) string {
	if len(events) == 0 {
		return ""
	}
	var names []string
	for _, e := range events {
		names = append(names, string(e))
	}
	return ", events " + strings.Join(names, ", ")
}
