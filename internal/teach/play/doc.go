// Package play lets a person choose the steps of a schedule, as the explorer does. The strategies'
// own code runs on the embedded engine. Each command waits at a gate of the explorer until the
// player releases it.
//
//	player -- Move(token) --> Game -- chooser --> explore: one schedule on real servers
//	player <-- Position ----- Game <-- View ------ what waits at the gates, in the database, in Redis
//
// A process can have only one open Game. The explorer inspects all goroutines of the process to
// find out that they are blocked, so each of two games would wait for the other's buyers. The shop
// runs each game in a child process.
package play
