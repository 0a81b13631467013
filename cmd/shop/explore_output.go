package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// runAgain prints one schedule.
func (o *exploreOptions) runAgain(ctx context.Context, w io.Writer, x *explore.Explorer) error {
	found, err := x.Replay(ctx, o.replay)
	if err != nil {
		return err
	}
	d := witness.Document{
		Title: "shop explore " + o.subject(), Summary: "One schedule, run again.", Buyers: len(found.Outcomes),
		Broken: witness.Found{Witness: found}, Data: found,
	}
	if o.format == "html" { // a page is read apart from the command
		d.Broken.Replay = o.again(found)
	}
	page, err := o.origin().replayed(found)
	if err != nil {
		return err
	}
	if err := firstOf(report.Save(o.output.files, page, w), printAs(o.format, w, d)); err != nil {
		return err
	}
	if found.Broken() {
		return &exitError{exitBroken, ""}
	}
	return nil
}

// printAs writes in the format that was asked for.
func printAs(format string, w io.Writer, d witness.Document) error {
	to, _ := witness.FormatNamed(format)
	return to.Write(w, d)
}

// ofSearch is what there is to say of a search.
func ofSearch(r explore.Report) witness.Document {
	d := witness.Document{
		Head: fmt.Sprintf("%s%s: %s in %.1f s (%.0f/s), %s",
			subject(r), withEvents(r.Events), r.Extent(), r.Seconds, r.PerSecond, explore.Count(r.Violations, "violation")),
		Title:   fmt.Sprintf("shop explore %s%s", titled(r), withEvents(r.Events)),
		Notes:   r.Notes(),
		Extent:  r.Extent(),
		Summary: fmt.Sprintf("%s, %s.", r.Extent(), explore.Count(r.Violations, "violation")),
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

// subject is what was explored, and with whom.
func subject(r explore.Report) string {
	if ofProgram(r) {
		return fmt.Sprintf("%s on %s, %d buyers", r.Strategy, r.Server, r.Buyers)
	}
	return fmt.Sprintf("%s on %s%s, %s, stock %d%s%s", r.Strategy, r.Engine, server(r), crowd(r), r.Stock, inParts(r.Parts), withUnits(r.Units))
}

// titled is what was explored, in a title.
func titled(r explore.Report) string {
	if ofProgram(r) {
		return r.Strategy + " on " + r.Server
	}
	return r.Strategy + " on " + r.Engine
}

// ofProgram: it is not of a strategy of ours.
func ofProgram(r explore.Report) bool { return r.Engine == explore.AppEngine }

// server says what an engine's database is; "" where the engine says it.
func server(r explore.Report) string {
	if r.Engine == engine.Embedded {
		return ""
	}
	return " (" + r.Server + ")"
}

// crowd says how many buyers there are, and in how many processes: a lock in memory
// stands or falls by that.
func crowd(r explore.Report) string {
	if r.Shared {
		return fmt.Sprintf("%d buyers in one process", r.Buyers)
	}
	return fmt.Sprintf("%d buyers, each a process of its own (--instances shared puts them in one)", r.Buyers)
}

// subject is what the command line names.
func (o *exploreOptions) subject() string {
	if o.app.file != "" {
		return "--app " + o.app.file
	}
	return o.strategy
}

// again is the command that replays a schedule.
func (o *exploreOptions) again(w *explore.Witness) string {
	if o.app.file != "" {
		return fmt.Sprintf("%s --replay %s", o.app.command(), w.Schedule)
	}
	on := o.engines.name
	if o.engines.db != "" {
		on = engine.URL
	}
	return explore.Replay(o.strategy, engine.Flags(on, o.engines.localDB, o.engines.localRedis), w)
}

func inParts(parts int64) string {
	if parts == 0 {
		return ""
	}
	return " in " + explore.Count(int(parts), "part")
}

func withUnits(units int64) string {
	if units == 1 {
		return ""
	}
	return fmt.Sprintf(", orders of %d units", units)
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
