// Package witness has what a schedule looked like, step by step, and the formats
// in which it is written.
//
// A format is one file and one line in Formats.
package witness

import "github.com/oversell/oversell/internal/verdict"

// A Step is one line of a witness.
type Step struct {
	Buyer   int    `json:"buyer"` // 0: no buyer's doing
	Command string `json:"command"`
	Result  string `json:"result"`
	Stock   int64  `json:"stock"`   // after it, as another connection reads it
	Records int64  `json:"records"` // the same

	Server string `json:"server"`
	Note   string `json:"note,omitempty"` // what it means beyond its answer
}

// A Witness is a schedule that ends badly, or with Replay any schedule.
type Witness struct {
	Schedule string          `json:"schedule"`
	Steps    []Step          `json:"steps"`
	Verdict  verdict.Verdict `json:"verdict"`

	Why      string    `json:"why"`
	Outcomes []Outcome `json:"outcomes"`
	Again    string    `json:"again,omitempty"` // with a concurrent pair: how often it ends this way
}

// Broken reports whether the schedule ends in a violation.
func (w *Witness) Broken() bool { return w.Verdict != verdict.Holds }

// An Outcome is what one buyer was answered.
type Outcome struct {
	Buyer  int    `json:"buyer"`
	Answer string `json:"told"` // an outcome of purchase, or "crashed"
	Error  string `json:"error,omitempty"`
}
