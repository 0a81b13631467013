// Package play lets a person choose the steps of a schedule that the explorer would choose by
// itself: the strategies' own code, on the embedded engine, held at the explorer's gates.
//
//	player -- Move(token) --> Game -- chooser --> explore: one schedule on real servers
//	player <-- Position ----- Game <-- View ------ what stands at the gates, in the database, in Redis
//
// A Game is for one process: how the explorer knows that everything stands still is a look at
// all goroutines of the process. So two games of one process would disturb each other, and the
// shop runs each in a child, see internal/play/host.
package play
