// Package witness has what a schedule looked like, step by step, and the formats
// in which it is written.
//
// A format is one file and one line in Formats.
package witness

import (
	"strconv"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Step is one line of a witness. Stock and Records are of our own strategies; Token, Name
// and Watched of programs.
type Step struct {
	Buyer   int    `json:"buyer"` // 0: no buyer's doing
	Command string `json:"command"`
	Result  string `json:"result"`
	Stock   int64  `json:"stock"`   // after it, as another connection reads it
	Records int64  `json:"records"` // the same

	Server string `json:"server"`
	Note   string `json:"note,omitempty"` // what it means beyond its answer

	Token   string   `json:"token,omitempty"`   // in the replay line; "" of what was no choice
	Name    string   `json:"name,omitempty"`    // the command without its values, the same in every run
	Watched []string `json:"watched,omitempty"` // after it, a value a column of Witness.Watch
}

// A Witness is a schedule that ends badly, or with Replay any schedule.
type Witness struct {
	Schedule string          `json:"schedule"`
	Steps    []Step          `json:"steps"`
	Verdict  verdict.Verdict `json:"verdict"`

	Why      string    `json:"why"`
	Outcomes []Outcome `json:"outcomes"`
	Again    string    `json:"again,omitempty"` // with a concurrent pair: how often it ends this way

	Program  string    `json:"program,omitempty"`  // that is not ours; "": a strategy of ours
	Watch    []string  `json:"watch,omitempty"`    // the columns of its user's own query; nil: there is none
	Findings []Finding `json:"findings,omitempty"` // what breaks it, as its user's own queries found it

	Choices []Choice `json:"-"` // that were made, of a program; nil where they are not known
}

// A Choice is what was chosen at one point of a program's schedule: what Saved needs to find
// it again.
type Choice struct {
	Buyer  int    `json:"buyer"` // 0: nobody's
	Token  string `json:"token"` // in the replay line
	Name   string `json:"name"`  // what it is without its values
	Server string `json:"server,omitempty"`
}

// A Finding is what a query has found that should find nothing.
type Finding struct {
	Query   string     `json:"query"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"` // a value a column; NULL and bytes as whoever asked writes them
}

// Columns are what is shown after each step: the stock and the records, or of a program
// what its user watches.
func (w *Witness) Columns() []string {
	if w.Program != "" {
		return w.Watch
	}
	return []string{"stock", "records"}
}

// Values are what Columns were after a step, one each; "" where nothing was seen.
func (w *Witness) Values(s Step) []string {
	if w.Program == "" {
		return []string{strconv.FormatInt(s.Stock, 10), strconv.FormatInt(s.Records, 10)}
	}
	values := make([]string, len(w.Watch))
	copy(values, s.Watched)
	return values
}

// Broken reports whether the schedule ends in a violation.
func (w *Witness) Broken() bool { return w.Verdict != verdict.Holds }

// An Outcome is the answer to one buyer.
type Outcome struct {
	Buyer  int    `json:"buyer"`
	Answer string `json:"told"`             // an outcome of purchase or "crashed"; for a program, the text of its answer
	Status int    `json:"status,omitempty"` // a program's HTTP status; 0 if it gave no complete answer
	Error  string `json:"error,omitempty"`
}

// Kind returns the HTTP status, or Answer if there is none.
func (o Outcome) Kind() string {
	if o.Status > 0 {
		return strconv.Itoa(o.Status)
	}
	return o.Answer
}
