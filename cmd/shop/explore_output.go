package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/report"
)

func (o *exploreOptions) runAgain(c *cobra.Command, x *explore.Explorer) error {
	found, err := x.Replay(c.Context(), o.replay)
	if err != nil {
		return err
	}
	if err := o.writeReplay(c, found, "One schedule, run again.", true); err != nil || !found.Broken() {
		return err
	}
	return cmp.Or(o.save(c, x, found), error(&exitError{exitBroken, ""}))
}

// writeReplay writes a schedule that was run again to every file and, if `prints` is true, to standard output.
func (o *exploreOptions) writeReplay(c *cobra.Command, w *explore.Witness, summary string, prints bool) error {
	w.Verbose = o.verbose
	page, err := o.origin().Replayed(w)
	if err == nil {
		err = report.Save(o.output.files, page, c.OutOrStdout())
	}
	if err != nil || !prints {
		return err
	}
	d := witness.Document{Title: "shop explore " + o.subject(), Summary: summary, Buyers: len(w.Outcomes), Broken: witness.Found{Witness: w}, Data: w}
	if o.format == "html" { // the page must contain the command, which its reader does not see
		d.Broken.Replay = o.again(w)
	}
	return printAs(o.format, c.OutOrStdout(), d)
}

// notes returns the writer for lines that are not the result. That is standard error if standard output has a
// format other than text.
func (o *exploreOptions) notes(c *cobra.Command) io.Writer {
	if o.format == "text" {
		return c.OutOrStdout()
	}
	return c.ErrOrStderr()
}

func printAs(format string, w io.Writer, d witness.Document) error {
	to, _ := witness.FormatNamed(format)
	return to.Write(w, d)
}

// write prints the result of a search, and writes it to every file.
func (o *exploreOptions) write(c *cobra.Command, r explore.Report) error {
	for _, w := range []*explore.Witness{r.Witness, r.ForeignWitness} {
		if w != nil {
			w.Verbose = o.verbose
		}
	}
	d, err := o.origin().Document(r)
	if err != nil {
		return err
	}
	return cmp.Or(report.Save(o.output.files, d, c.OutOrStdout()), printAs(o.format, c.OutOrStdout(), findings.Of(r)))
}

func (o *exploreOptions) origin() findings.Origin {
	return findings.Origin{Subject: o.subject(), Again: o.again}
}

func (o *exploreOptions) subject() string {
	if o.app.file != "" {
		return "--app " + o.app.file
	}
	return o.strategy
}

// again returns the command that replays the schedule of a witness.
func (o *exploreOptions) again(w *explore.Witness) string {
	if o.app.file != "" {
		return fmt.Sprintf("%s --replay %s", o.app.command(), w.Schedule)
	}
	on := o.engines.Name
	if o.engines.DB != "" {
		on = engine.URL
	}
	return explore.Replay(o.strategy, engine.Flags(on, o.engines.LocalDB, o.engines.LocalRedis), w)
}
