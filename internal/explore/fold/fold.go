// Package fold shortens the witness of a program: the recorded steps that lead to a violation. The short form shows
// only steps that concern the violation, in few rows and with short commands. The full witness keeps every step.
//
// A step is hidden only if it cannot have caused the violation. Two conditions must hold:
//   - It touches no table or key that the broken rule names, or that another buyer writes.
//   - It writes no table or key that another buyer touches.
//
// If the analysis cannot decide this, for example because the step calls a procedure, it shows the step. Fold makes
// three passes. The method analyse finds the tables and keys of each step, hide selects the hidden steps, and merge
// joins the remaining rows.
package fold

import (
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Run is a complete run of the buyers of a program.
type Run struct {
	Steps    []witness.Step
	Verdict  verdict.Verdict
	Findings []witness.Finding
	Watch    []string                      // columns of the result of the query `watch` in oversell.yaml
	Tables   map[string]serverstate.Tables // by protocol ("mysql", "postgres"); steps at a database without an entry are never hidden
	Shared   bool                          // all buyers are in one process, so no step is hidden
}

// maxUnfolded is the largest number of steps that is shown in full, since it fits on a screen.
const maxUnfolded = 20

// Fold returns the short form of a run. In it, a row "... N more commands" stands for hidden steps.
func Fold(r Run) *witness.Folded {
	var steps []step
	hidden := make([]bool, len(r.Steps))
	if len(r.Steps) > maxUnfolded {
		steps = r.analyse()
		hidden = r.hide(steps)
	}
	p := newPicker(r, hidden)
	f := &witness.Folded{}
	for i := 0; i < len(r.Steps); {
		if !hidden[i] {
			f.Rows = append(f.Rows, witness.Row{First: i + 1, Last: i + 1, Steps: []witness.Step{p.short(r.Steps[i])}})
			i++
			continue
		}
		end := i
		for end < len(hidden) && hidden[end] && r.Steps[end].Buyer == r.Steps[i].Buyer {
			end++
		}
		buyer := r.Steps[i].Buyer
		if f.Omitted == nil {
			f.Omitted = map[int]int{}
		}
		f.Omitted[buyer] += end - i
		placeholder := witness.Step{Buyer: buyer, Server: r.Steps[i].Server, Command: fmt.Sprintf("... %d more commands", end-i), Watched: r.Steps[end-1].Watched}
		f.Rows = append(f.Rows, witness.Row{First: i + 1, Last: end, Steps: []witness.Step{placeholder}})
		i = end
	}
	if len(r.Steps) > maxUnfolded {
		f.Rows = merge(f.Rows)
	}
	return f
}

// merge joins successive commands of one buyer into one row. After a watched value has changed, it begins a new row. So
// the table shows which command changed the value.
func merge(rows []witness.Row) (all []witness.Row) {
	open := false // the next command of the same buyer joins the last row
	var before []string
	for _, row := range rows {
		s := row.Steps[0]
		command := s.Buyer > 0 && s.Server != ""
		if open && command && all[len(all)-1].Buyer() == s.Buyer {
			last := &all[len(all)-1]
			last.Last = row.Last
			last.Steps = append(last.Steps, s)
		} else {
			all = append(all, row)
		}
		open = command && (before == nil || slices.Equal(before, s.Watched))
		before = s.Watched
	}
	for i := range all {
		all[i].Steps = joinRepeats(all[i].Steps)
	}
	return all
}

// joinRepeats replaces successive equal steps, such as polls of a lock, by one step with the number of repetitions.
func joinRepeats(steps []witness.Step) (all []witness.Step) {
	for i := 0; i < len(steps); {
		n := 1
		for i+n < len(steps) && steps[i+n].Command == steps[i].Command && steps[i+n].Result == steps[i].Result && steps[i+n].Note == steps[i].Note && steps[i+n].Connection == steps[i].Connection {
			n++
		}
		one := steps[i+n-1]
		if n > 1 {
			one.Command += fmt.Sprintf(" (%d times)", n)
		}
		all = append(all, one)
		i += n
	}
	return all
}
