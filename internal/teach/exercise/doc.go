// Package exercise implements `shop exercise`. It copies an exercise to a learner's folder and compiles the
// code there together with the judge, which tests it. It runs that program as a child process, injects
// faults, and records which exercises are solved.
//
//	DIR/shop.go --build--> judge (child) -- alone, drills, every schedule --> Judgement
//	                       judge serve (two children) <-- rush over HTTP -- internal/load/rush
//
// The learner's code never runs in this process. If it panics, never ends or fills memory, only the
// child is affected. Package exercises has the content of the exercises.
package exercise
