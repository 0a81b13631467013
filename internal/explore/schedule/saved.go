package schedule

import (
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// Saved is a program's schedule in a file, to run the same schedule after the program has changed. It
// names commands. A replay string counts them, and would mean another command after one was added.
type Saved struct {
	Version  int              `json:"version"`
	Program  string           `json:"program"`
	Buyers   int              `json:"buyers"`
	Shared   bool             `json:"shared,omitempty"`  // all buyers in one process
	Overlap  bool             `json:"overlap,omitempty"` // the search had --overlap
	Events   []Event          `json:"events"`            // events of the search
	Verdict  verdict.Verdict  `json:"verdict"`
	Why      string           `json:"why"`
	Schedule string           `json:"schedule"` // replay string for the program at that time
	Steps    []witness.Choice `json:"steps"`
}
