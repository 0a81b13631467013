// Package level has what a player is asked to do: which code to break and how, or to show that
// nobody can.
//
// A level is one file and one line in All. What the best way to its goal costs nobody writes
// down: the explorer computes it (`make generate`), and a test computes it again.
package level

import (
	"slices"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

// A Level is one task.
type Level struct {
	Name   string // in the address and on the command line
	Title  string
	Task   string
	Config play.Config

	// Goal is how the schedule must end, see play.End.Reached: "" is any violation.
	Goal verdict.Verdict
	// Nobody: no order breaks, and who claims so wins. The explorer's search of every order
	// answers the claim.
	Nobody bool
	// Open: the player is not told whether it can be broken.
	Open bool

	Minutes int    // that it takes somebody who sees it for the first time
	Thought string // the first hint
	Deed    string // the second; the third is the explorer's, see Next
	Learned string // shown when it is won
	Source  string // of what is learned
}

// All are the levels in the order of the lesson.
func All() []Level {
	all := []Level{
		// the lost update
		sellTwice(),
		loseAnUpdate(),
		threeBuyers(),
		beginAndCommit(),
		unlockTooEarly(),
		// a lock in memory
		secondProcess(),
		oneProcess(),
		// Redis, how it grew
		deadHolder(),
		gapBeforeExpiry(),
		expiryInOne(),
		slowSection(),
		freeAnothers(),
		checkThenDelete(),
		expiryInTheValue(),
		theBestOfOneNode(),
		redisForgets(),
		deadWatchdog(),
		// stock in Redis, and several nodes
		aUnitLeaks(),
		theCounterIsGone(),
		oneNodeRestarts(),
		// what holds
		aLateHolder(),
		versionColumn(),
		lockTheRow(),
		oneStatement(),
	}
	for i := range all {
		all[i].Config = all[i].Config.Filled()
	}
	return all
}

// Named finds a level.
func Named(name string) (Level, bool) {
	all := All()
	i := slices.IndexFunc(all, func(l Level) bool { return l.Name == name })
	if i < 0 {
		return Level{}, false
	}
	return all[i], true
}

// Names are those of all levels.
func Names() (names []string) {
	for _, l := range All() {
		names = append(names, l.Name)
	}
	return names
}

// WonBy reports whether a schedule that has ended so wins.
func (l Level) WonBy(e *play.End) bool { return !l.Nobody && e.Reached(l.Goal) }

// WonByProof reports whether the claim that nobody can break it wins.
func (l Level) WonByProof(p play.Proof) bool { return l.Nobody && p.Holds }

// Wanted is the condition, in words.
func (l Level) Wanted() string {
	switch {
	case l.Open:
		return "break it, or claim that nobody can"
	case l.Nobody:
		return "claim that nobody can break it"
	case l.Goal == verdict.Unlocked:
		return "a buyer deletes the lock of another"
	}
	return "the end is " + string(l.Goal)
}
