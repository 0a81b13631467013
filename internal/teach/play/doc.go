// Package play lets a person choose the steps of a schedule (the order of the buyers' commands), which
// otherwise the explorer chooses. The strategies' own code runs on the embedded servers, SQLite and Redis.
// The explorer holds each command back until the player releases it.
//
//	player -- Move(token) --> Game -- chooser --> explore: one schedule on real servers
//	player <-- Position ----- Game <-- View ------ what waits at the gates, in the database, in Redis
//
// A process can have only one open Game. The explorer waits until all goroutines of the process are blocked, so
// each of two games would wait for the other's buyers. The shop runs each game in a child process.
package play
