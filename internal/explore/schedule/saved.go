package schedule

import (
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// Saved is a program's schedule in a file. It can be repeated after the program has changed, since it names the
// commands. A replay string only counts the commands, so a new command in the program would make it select others.
type Saved struct {
	Version  int              `json:"version"`
	Program  string           `json:"program"`
	Buyers   int              `json:"buyers"`
	Shared   bool             `json:"shared,omitempty"`  // all buyers in one process
	Overlap  bool             `json:"overlap,omitempty"` // the search used --overlap
	Events   []Event          `json:"events"`            // events that the search could inject
	Verdict  verdict.Verdict  `json:"verdict"`
	Why      string           `json:"why"`
	Schedule string           `json:"schedule"` // replay string for that version of the program
	Steps    []witness.Choice `json:"steps"`
}
