// Package exercise is what shop exercise does: it copies an exercise into a learner's folder,
// compiles what is there together with the judge, runs that as a child, sends it crowds and
// faults, and keeps what was solved.
//
//	DIR/shop.go --build--> judge (child) -- alone, drills, every order --> Report
//	                       judge serve (two children) <-- crowd over HTTP -- internal/load/rush
//
// The learner's code never runs in this process: what panics, never ends or fills memory there
// ends with the child. What the exercises are is the package exercises.
package exercise
