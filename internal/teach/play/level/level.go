// Package level contains the levels of the game. A level says which code the player must break and
// how, or that the code cannot be broken.
//
// A level is one entry of levels.yaml. The file par.csv has the cost of the best path to each goal. The
// explorer computes this cost (`make generate`), and a test computes it again.
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

	// Goal is the verdict with which the player's schedule must end. "" means any violation.
	Goal verdict.Verdict `yaml:"goal"`
	// Unbreakable means that no schedule breaks the code, and that the player wins by saying so. The explorer
	// checks this claim with every schedule.
	Unbreakable bool `yaml:"nobody"`
	// Open means that the player is not told whether the code can be broken.
	Open bool `yaml:"open"`

	Minutes int    `yaml:"minutes"` // time that a new player needs
	Thought string `yaml:"thought"` // the first hint
	Deed    string `yaml:"deed"`    // the second hint; the third, from Next, comes from the explorer
	Learned string `yaml:"learned"` // shown when the level is won
	Source  string `yaml:"source"`  // the document that the lesson is based on
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

// WonByProof reports whether the player wins by the claim that the code cannot be broken, which p has checked.
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
