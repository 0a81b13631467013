// Package standstill knows when the code under test is at rest: when nothing of it
// can go on by itself, so that the next step is the scheduler's.
//
// Goroutines asks the stacks of this process. A Detector for foreign processes
// would ask the states of their threads.
package standstill

// A Detector knows whether the code under test is at rest. It decides by states,
// not by time. It is for one goroutine.
type Detector interface {
	// AtRest reports whether nothing can go on by itself: each thread waits for
	// another one, for a command that was let go, or for a message. That none is on
	// its way is the caller's to know.
	AtRest() bool
	// Ended reports whether nothing of the code under test is left that would still
	// send a command.
	Ended() bool
}
