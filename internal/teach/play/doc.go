// Package play lets a person choose the steps of a schedule that the explorer would choose by
// itself: the strategies' own code, on the embedded engine, held at the explorer's gates.
//
//	player -- Move(token) --> Game -- chooser --> explore: one schedule on real servers
//	player <-- Position ----- Game <-- View ------ what stands at the gates, in the database, in Redis
//
// A Game is for one process: how the explorer knows that everything stands still is a look at
// all goroutines of the process. Of two games that are open in one process each would wait for the
// other's buyers: close the one before the other is opened. The shop runs each in a child.
package play
