// Package witness describes a schedule step by step, and writes it in several formats. Each format is
// one file and one line in Formats.
package witness

import (
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Step is one line of a witness. Strategies of the catalogue set Stock and Records; programs set
// Token, Name and Watched.
type Step struct {
	Buyer   int    `json:"buyer"` // 0: no buyer
	Command string `json:"command"`
	Result  string `json:"result"`
	Stock   int64  `json:"stock"`   // stock after the step, as another connection reads it
	Records int64  `json:"records"` // number of records after the step

	Server string `json:"server"`
	Note   string `json:"note,omitempty"` // a remark besides the answer

	Token   string   `json:"token,omitempty"`   // in the replay string; "" if the step was no choice
	Name    string   `json:"name,omitempty"`    // the command without its values, the same in every run
	Watched []string `json:"watched,omitempty"` // values of Witness.Watch after the step

	// The following belongs to a program's command. People are shown parts of it.
	Whole      string   `json:"-"` // Command without a limit to its length; "" if Command is complete
	Rows       [][]Cell `json:"-"` // the first rows of the answer, complete although Result may be cut
	Unseen     int      `json:"-"` // number of rows after these
	Connection int64    `json:"-"` // number of its connection at the server; 0 if unknown
}

// The marks of a step that has only the answer of an earlier command: the server or the release of
// another buyer let the command through, or its time-out ended it.
const (
	LetThrough = "(let through) "
	TimedOut   = "(timed out) "
)

// CutMark returns the mark before a step's command, which may be "", and the command without it.
func CutMark(command string) (mark, bare string) {
	for _, mark := range []string{LetThrough, TimedOut} {
		if bare, found := strings.CutPrefix(command, mark); found {
			return mark, bare
		}
	}
	return "", command
}

// A Cell is one column of an answer's row.
type Cell struct{ Column, Value string }

// A Witness is a schedule that breaks or, with Replay, any schedule.
type Witness struct {
	Schedule string          `json:"schedule"`
	Steps    []Step          `json:"steps"`
	Verdict  verdict.Verdict `json:"verdict"`

	Why      string    `json:"why"`
	Outcomes []Outcome `json:"outcomes"`
	Again    string    `json:"again,omitempty"` // how often it ends this way: with a concurrent pair, or if replays ended differently

	Program  string    `json:"program,omitempty"`  // name of a program under test; "": a strategy of the catalogue
	Watch    []string  `json:"watch,omitempty"`    // columns of the user's watch query; nil if there is none
	Findings []Finding `json:"findings,omitempty"` // broken rules of the user

	Choices []Choice `json:"-"` // choices of a program; nil if unknown
	Folded  *Folded  `json:"-"` // the short form for people; nil: every step as it is
	Verbose bool     `json:"-"` // people are shown every command, in full
}

// A Choice is one choice of a program's schedule, with the parts by which explore.Saved finds it again.
type Choice struct {
	Buyer  int    `json:"buyer"` // 0: no buyer
	Token  string `json:"token"` // in the replay string
	Name   string `json:"name"`  // the command without its values
	Server string `json:"server,omitempty"`
}

// A Finding is a rule of `never` that returned rows, or how the end differs from each order of the buyers.
type Finding struct {
	Query   string     `json:"query"`            // "" with Title
	Title   string     `json:"title,omitempty"`  // the problem in one line; "": Query returned rows
	Remedy  string     `json:"remedy,omitempty"` // the way out if the end is right all the same
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"` // one value per column; the caller formats NULL and bytes
}

// Columns returns the columns that are shown after each step: stock and records, or the watch query's
// columns.
func (w *Witness) Columns() []string {
	if w.ofProgram() {
		return w.Watch
	}
	return []string{"stock", "records"}
}

// Values returns the values of Columns after a step; "" if they were not read.
func (w *Witness) Values(s Step) []string {
	if !w.ofProgram() {
		return []string{strconv.FormatInt(s.Stock, 10), strconv.FormatInt(s.Records, 10)}
	}
	values := make([]string, len(w.Watch))
	copy(values, s.Watched)
	return values
}

func (w *Witness) ofProgram() bool { return w.Program != "" }

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
