package target

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/fold"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/load/pulse"
)

// A recorder is a conduct.Recorder that also records the result of the query `watch` of oversell.yaml after each step.
type recorder struct {
	*conduct.Recorder[*gates.Op]
	names    *naming.Names
	servers  *app.Servers
	leftover *leftover
	watched  []string // the columns of the query's result

	columns []string // copy of watched; nil before the first query
	shown   int      // number of steps that already have the values of the query
}

// sent records a command that is about to be released.
func (w *recorder) sent(o *gates.Op) {
	s := witness.Step{Buyer: o.Buyer, Command: o.Shown, Name: naming.Plain(o.Text), Server: o.Conn().Protocol, Connection: o.Conn().ID, Result: "waits for another"}
	if w.Observe && o.Whole != nil {
		s.Whole = w.names.Seen(o.Whole())
	}
	w.Sent(o, s)
}

// executed records that a command was executed, and that its server holds it before its commit.
func (w *recorder) executed(o *gates.Op) {
	w.answer(o, o.Result+", held inside the server before its commit")
}

func (w *recorder) commits(o *gates.Op) {
	s := witness.Step{Buyer: o.Buyer, Command: "(commits) " + naming.UpToTable(o.Shown), Name: "COMMIT of " + naming.Plain(o.Text), Server: o.Conn().Protocol, Connection: o.Conn().ID}
	w.Sent(o, s)
}

func (w *recorder) answered(o *gates.Op) {
	if o.Committing && !o.Answer.Failed {
		w.Answered(o, witness.Step{Buyer: o.Buyer, Server: o.Conn().Protocol, Connection: o.Conn().ID, Result: "committed"}, false)
		return
	}
	w.answer(o, o.Result)
}

func (w *recorder) answer(o *gates.Op, result string) {
	s := witness.Step{Buyer: o.Buyer, Server: o.Conn().Protocol, Connection: o.Conn().ID, Result: result, Unseen: o.Answer.Unseen}
	if w.Observe {
		for _, row := range o.Answer.Rows {
			var cells []witness.Cell
			for _, v := range row {
				cells = append(cells, witness.Cell{Column: v.Column, Value: w.names.Seen(v.Value)})
			}
			s.Rows = append(s.Rows, cells)
		}
	}
	w.Answered(o, s, o.Interrupted)
}

// pushed records a message that a server sent without a command.
func (w *recorder) pushed(o *gates.Op) {
	if w.Observe {
		w.Steps = append(w.Steps, witness.Step{Buyer: o.Buyer, Command: "(message) " + w.answerOf(o), Server: o.Conn().Protocol})
	}
}

func (w *recorder) happened(m move) {
	w.Happened(witness.Step{Buyer: m.Buyer, Name: m.Name, Token: m.Token}, m.Text)
}

func (w *recorder) mark(step int, note string) {
	if step >= 0 && step < len(w.Steps) && w.Steps[step].Note != note {
		w.Steps[step].Note = strings.TrimPrefix(w.Steps[step].Note+"; "+note, "; ")
	}
}

// watch runs the query and adds its result to the steps that have none yet.
func (w *recorder) watch(ctx context.Context) error {
	if !w.Observe {
		return nil
	}
	if err := w.leftover.look(ctx); err != nil {
		return err
	}
	_, values, err := w.servers.Watch(ctx)
	w.columns = w.watched
	switch {
	case app.Locked(err):
		values = slices.Repeat([]string{"locked"}, len(w.columns))
	case err != nil:
		return err
	}
	for ; w.shown < len(w.Steps); w.shown++ {
		w.Steps[w.shown].Watched = values
	}
	return nil
}

// answerOf returns a command's answer as text for the user, which is the same in every run. First it replaces values by
// their names, and then it shortens the text.
func (w *recorder) answerOf(o *gates.Op) string {
	return wire.Shorten(w.names.Answer(o.Text, cmp.Or(o.Answer.Whole, o.Answer.Text)))
}

// folded returns the short form of the steps; nil if no witness is recorded. If it cannot read the tables of a
// database, it keeps all steps at that database.
func (w *recorder) folded(ctx context.Context, e *schedule.Ended, shared bool) *witness.Folded {
	if !w.Observe {
		return nil
	}
	tables := readTables(ctx, w.servers)
	return fold.Fold(fold.Run{Steps: e.Steps, Verdict: e.Verdict, Findings: e.Findings, Watch: e.Watch, Tables: tables, Shared: shared})
}

// readTables returns the tables of each database, by protocol. It leaves out databases that it cannot read.
func readTables(ctx context.Context, servers *app.Servers) map[string]serverstate.Tables {
	tables := map[string]serverstate.Tables{}
	for _, protocol := range []string{"mysql", "postgres"} {
		if db := servers.SQL(protocol); db != nil {
			bounded, cancel := pulse.WithTimeout(ctx, serverstate.CatalogTimeout)
			if found, err := serverstate.ReadTables(bounded, db, protocol); err == nil {
				tables[protocol] = found
			}
			cancel()
		}
	}
	return tables
}
