// Package witness describes a schedule step by step, and writes it in several formats. Each format is in its own file,
// and is listed in Formats.
package witness

import (
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Step is one step of a witness. Stock and Records are set only for strategies of the catalogue. Token, Name and
// Watched are set only for programs under test.
type Step struct {
	Buyer   int    `json:"buyer"` // 0: no buyer
	Command string `json:"command"`
	Result  string `json:"result"`
	Stock   int64  `json:"stock"`   // stock after the step, as another connection reads it
	Records int64  `json:"records"` // number of purchase records after the step

	Server string `json:"server"`
	Note   string `json:"note,omitempty"` // a remark in addition to the result

	Token   string   `json:"token,omitempty"`   // in the replay string; "" if the step is not a choice
	Name    string   `json:"name,omitempty"`    // the command without its values, the same in every run
	Watched []string `json:"watched,omitempty"` // values of Witness.Watch after the step

	// The following fields are set only for a program's command. The output shows parts of them.
	Whole      string   `json:"-"` // the full text of the command; "" if Command is complete
	Rows       [][]Cell `json:"-"` // the first rows of the answer, with complete values (Result may be shortened)
	Unseen     int      `json:"-"` // number of further rows
	Connection int64    `json:"-"` // the connection's number at the server; 0 if unknown
}

// A step whose command begins with one of these marks adds the answer to an earlier command. That command waited in
// the server, either until it was executed (LetThrough) or until its time-out (TimedOut).
const (
	LetThrough = "(let through) "
	TimedOut   = "(timed out) "
)

// CutMark returns the mark of a step's command, which may be "", and the command without the mark.
func CutMark(command string) (mark, bare string) {
	for _, mark := range []string{LetThrough, TimedOut} {
		if bare, found := strings.CutPrefix(command, mark); found {
			return mark, bare
		}
	}
	return "", command
}

// A Cell is one value of a row in an answer, with its column.
type Cell struct{ Column, Value string }

// A Witness is a schedule that ends in a violation, or any schedule that was replayed.
type Witness struct {
	Schedule string          `json:"schedule"`
	Steps    []Step          `json:"steps"`
	Verdict  verdict.Verdict `json:"verdict"`

	Why      string    `json:"why"`
	Outcomes []Outcome `json:"outcomes"`
	Again    string    `json:"again,omitempty"` // for a schedule that does not always end this way: how often it does

	Program  string    `json:"program,omitempty"`  // name of a program under test; "": a strategy of the catalogue
	Watch    []string  `json:"watch,omitempty"`    // columns of the user's watch query; nil without such a query
	Findings []Finding `json:"findings,omitempty"` // broken rules of the user

	Choices []Choice `json:"-"` // choices of a program's schedule; nil if unknown
	Folded  *Folded  `json:"-"` // the short form; nil: show every step
	Verbose bool     `json:"-"` // show every command, in full
}

// A Choice is one choice of a program's schedule. explore.Saved finds the choice again by these fields.
type Choice struct {
	Buyer  int    `json:"buyer"` // 0: no buyer
	Token  string `json:"token"` // token in the replay string
	Name   string `json:"name"`  // the command without its values
	Server string `json:"server,omitempty"`
}

// A Finding is a broken rule of `never` with its rows, or a way in which the run's end differs from every serial run.
type Finding struct {
	Query   string     `json:"query"`            // as written in oversell.yaml; "" if Title is set
	Answers bool       `json:"-"`                // Query uses :sold or :failed, so it has no meaning before every buyer has an answer
	Title   string     `json:"title,omitempty"`  // the problem in one line; "": Query returned rows
	Remedy  string     `json:"remedy,omitempty"` // advice on how to change oversell.yaml if the program is right
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"` // one value per column; the caller formats NULL and bytes
}

// Columns returns the columns that are shown after each step: stock and records or, for a program, the columns of
// the watch query.
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
	Answer string `json:"told"`             // an outcome of package purchase, or "crashed"; for a program, the text of its answer
	Status int    `json:"status,omitempty"` // a program's HTTP status; 0 without a complete answer
	Error  string `json:"error,omitempty"`
}

// Kind returns the HTTP status, or Answer if there is none.
func (o Outcome) Kind() string {
	if o.Status > 0 {
		return strconv.Itoa(o.Status)
	}
	return o.Answer
}
