// Package result is the result of `shop ci`: its checks, and how they compare with the result of another branch.
package result

import (
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// Schema is the version of result.json. It changes when the meaning of a field changes.
const Schema = 1

// A Result is the content of result.json.
type Result struct {
	Schema     int       `json:"schema"`
	Shop       string    `json:"shop"`             // version of the program that wrote it
	Commit     string    `json:"commit,omitempty"` // commit of the repository; "" outside git
	Started    time.Time `json:"started"`
	Seconds    float64   `json:"seconds"`
	Shard      string    `json:"shard,omitempty"` // the part of the checks, such as "1/3"; "" if the checks were not divided
	Strict     bool      `json:"strict"`          // a break fails the run even if it is in the baseline
	OK         bool      `json:"ok"`              // the exit code is 0
	Exit       int       `json:"exit"`            // exit code of the command
	Checks     []Check   `json:"checks"`
	Baseline   *Baseline `json:"baseline"`             // null without --baseline
	Notes      []string  `json:"notes,omitempty"`      // paragraphs for the reader
	Unfinished string    `json:"unfinished,omitempty"` // why checks are missing; "" if all are there
}

// Kinds of checks.
const (
	Explore = "explore" // every schedule of a program
	Verify  = "verify"  // one strategy of a running service in one situation, such as a fault
)

// A Status says how urgent a check is for the reader.
type Status string

// The statuses, the most urgent first.
const (
	Broken       Status = "broken"       // a rule or a promise of the strategy does not hold
	Error        Status = "error"        // the check could not run
	Inconclusive Status = "inconclusive" // the check proved nothing, even when repeated
	Holds        Status = "holds"
)

// A Check is one search of a program, or one test of a running service by `shop verify --target`.
type Check struct {
	Name     string            `json:"name"` // the same in every run
	Kind     string            `json:"kind"`
	File     string            `json:"file,omitempty"` // relative to the repository; "" if it is outside, and for Verify
	Line     int               `json:"line,omitempty"` // line number of the broken rule in File, from 1
	Strategy string            `json:"strategy,omitempty"`
	Fault    promise.Condition `json:"fault,omitempty"`
	Promise  verdict.Verdict   `json:"promise,omitempty"`

	Status     Status            `json:"status"`
	Verdict    verdict.Verdict   `json:"verdict"` // "" if the check could not run
	Why        string            `json:"why"`     // one sentence without its full stop
	Complete   bool              `json:"complete"`
	Schedules  int               `json:"schedules"`
	Violations int               `json:"violations"`
	Seconds    float64           `json:"seconds"`  // duration of all attempts
	Attempts   []Attempt         `json:"attempts"` // in order of time
	Command    string            `json:"command"`  // repeats the check
	Witness    *BreakingSchedule `json:"witness,omitempty"`
	Sources    []Source          `json:"sources,omitempty"` // source lines that the program's log names

	Fingerprint string     `json:"fingerprint,omitempty"` // hash of everything that decides the result; "" if unknown
	Unchanged   *Unchanged `json:"unchanged,omitempty"`   // the result comes from an earlier run
	Change      Change     `json:"change,omitempty"`      // compared with the baseline; "" without a baseline
	ChangeWhy   string     `json:"change_why,omitempty"`

	Case report.Case `json:"-"` // the check as the other report formats show it
}

// An Attempt is one run of a check.
type Attempt struct {
	Status    Status          `json:"status"`
	Verdict   verdict.Verdict `json:"verdict"`
	Why       string          `json:"why"`
	Complete  bool            `json:"complete"`
	Schedules int             `json:"schedules"`
	Seconds   float64         `json:"seconds"`
}

// A BreakingSchedule is the shortest schedule that breaks the program.
type BreakingSchedule struct {
	Replay  string          `json:"replay"`            // replay string
	File    string          `json:"file,omitempty"`    // file for the flag --replay; "" if the schedule cannot be saved
	Command string          `json:"command"`           // runs the schedule again
	Rules   []string        `json:"rules"`             // broken rules of the section `never`; empty if only the answers are wrong
	Saved   *schedule.Saved `json:"saved,omitempty"`   // content of File
	Steps   []witness.Step  `json:"steps,omitempty"`   // the steps, with the answers of the servers
	Printed string          `json:"printed,omitempty"` // output of the program while the schedule ran
}

// HasFile reports whether the schedule has a replay file.
func (w *BreakingSchedule) HasFile() bool { return w != nil && w.Saved != nil }

// A Source is a line of source code that the program's log names.
type Source struct {
	File string `json:"file"` // relative to the repository
	Line int    `json:"line"`
	Text string `json:"text"` // the line of the log that names it
}

// Unchanged names the earlier run that a stored result comes from.
type Unchanged struct {
	Commit string    `json:"commit,omitempty"`
	At     time.Time `json:"at"`
}

// String returns a part of a sentence: "unchanged since 1a2b3c4d of 2026-01-02".
func (u Unchanged) String() string {
	text := "unchanged since "
	if u.Commit != "" {
		text += short(u.Commit) + " of "
	}
	return text + u.At.UTC().Format("2006-01-02 15:04 MST")
}

func short(commit string) string { return commit[:min(len(commit), 8)] }

// Old reports whether the check breaks as it did in the baseline.
func (c Check) Old() bool { return c.Status == Broken && c.Change == Before }

// Fails reports whether the check makes the command end with exit code 1.
func (r Result) Fails(c Check) bool { return c.Status == Broken && (r.Strict || !c.Old()) }

// Exit codes of the command.
const (
	exitHolds        = 0
	exitBroken       = 1
	exitError        = 2
	exitInconclusive = 3
)

// Finish computes the fields that depend on the checks. The exit code names the worst of them: a break is
// worse than an error, and an error worse than an inconclusive check.
func (r *Result) Finish() {
	r.Seconds = time.Since(r.Started).Seconds()
	r.Exit = exitHolds
	for _, c := range r.Checks {
		switch {
		case r.Fails(c):
			r.Exit = exitBroken
		case c.Status == Error && r.Exit != exitBroken:
			r.Exit = exitError
		case c.Status == Inconclusive && r.Exit == exitHolds:
			r.Exit = exitInconclusive
		}
	}
	r.OK = r.Exit == exitHolds && r.Unfinished == ""
}

// With returns the checks with the given status.
func (r Result) With(s Status) (checks []Check) {
	for _, c := range r.Checks {
		if c.Status == s {
			checks = append(checks, c)
		}
	}
	return checks
}
