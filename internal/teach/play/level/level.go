// Package level contains the levels of the game. A level says which code the player must break and
// how, or that the code cannot be broken.
//
// A level is one entry of levels.yaml. par.csv has the cost of the best path to each goal. The
// explorer computes it (`make generate`), and a test computes it again.
package level

import (
	_ "embed"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

// A Level is one task.
type Level struct {
	Name   string      `yaml:"name"` // used in the address and on the command line
	Title  string      `yaml:"title"`
	Task   string      `yaml:"task"`
	Config play.Config `yaml:"config"`

	// Goal is the required end of the schedule, see play.End.Reached. "" means any violation.
	Goal verdict.Verdict `yaml:"goal"`
	// Unbreakable means that no schedule breaks the code, and that the player wins by claiming so. The
	// explorer checks the claim with every schedule.
	Unbreakable bool `yaml:"nobody"`
	// Open means that the player is not told whether the code can be broken.
	Open bool `yaml:"open"`

	Minutes int    `yaml:"minutes"` // time that a new player needs
	Thought string `yaml:"thought"` // the first hint
	Deed    string `yaml:"deed"`    // the second hint; the third comes from the explorer, see Next
	Learned string `yaml:"learned"` // shown when the level is won
	Source  string `yaml:"source"`  // where the lesson comes from
}

//go:embed levels.yaml
var table []byte

// All returns the levels in the order of the lesson.
func All() []Level {
	var all []Level
	if err := yaml.UnmarshalWithOptions(table, &all, yaml.Strict()); err != nil {
		panic("levels.yaml: " + err.Error()) // the file is embedded, and tests read it
	}
	for i := range all {
		all[i].Config = all[i].Config.Filled()
	}
	return all
}

// Named returns the level with that name.
func Named(name string) (Level, bool) {
	all := All()
	i := slices.IndexFunc(all, func(l Level) bool { return l.Name == name })
	if i < 0 {
		return Level{}, false
	}
	return all[i], true
}

// Names lists all levels.
func Names() (names []string) {
	for _, l := range All() {
		names = append(names, l.Name)
	}
	return names
}

// WonBy reports whether a schedule with this end wins.
func (l Level) WonBy(e *play.End) bool { return !l.Unbreakable && e.Reached(l.Goal) }

// WonByProof reports whether the claim that the code cannot be broken wins.
func (l Level) WonByProof(p play.Proof) bool { return l.Unbreakable && p.Holds }

// Wanted says how to win.
func (l Level) Wanted() string {
	switch {
	case l.Open:
		return "break it, or claim that it cannot be broken"
	case l.Unbreakable:
		return "claim that it cannot be broken"
	case l.Goal == verdict.Unlocked:
		return "a buyer deletes the lock of another"
	}
	return "the end is " + string(l.Goal)
}
