package lockstrategy

import (
	"slices"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// killedNode are the faults under which the shops lose their node at once and go to another,
// where no COMMIT returns until that one has given up the dead node (evs.suspect_timeout,
// 5 s unless set).
func killedNode() []promise.Condition { return []promise.Condition{promise.DBKill, promise.DBNodeKill} }

// silentNode are those under which a COMMIT waits or does not, by which node it is at.
func silentNode() []promise.Condition {
	return []promise.Condition{promise.DBNodeFreeze, promise.DBNodeCut, promise.DBNodeRejoin}
}

// nodeFaults are all that strike a node.
func nodeFaults() []promise.Condition {
	return slices.Concat(killedNode(), silentNode(), []promise.Condition{promise.DBClusterRestart})
}

// heldAtCommit are the faults that stop a holder in its COMMIT, when its write is there and
// locks the row at its own node: another node's sale takes it away, and the COMMIT is
// refused. Where a holder is stopped before it writes, nothing is refused.
func heldAtCommit() []promise.Condition {
	return []promise.Condition{promise.Pause, promise.RedisRestart, promise.RedisFailover, promise.NodeRestart, promise.ClockJump}
}

// onGalera says what differs on a Galera cluster. It follows from what a strategy rests on:
//
//   - SQL that the database decides on holds: a COMMIT that rests on a row which another
//     node has written is refused (1213), and the strategy starts again.
//   - A lock that is kept elsewhere excludes others, and its next holder may be at a node
//     that has not applied yet what the last one has committed (TestGaleraStaleRead). With
//     one writer there is no such node, but while a node is lost or comes back: each process
//     goes to another, and returns, by itself.
//   - A lease that nobody renews runs out inside a COMMIT that waits for a node that is
//     dead, with one writer or three.
//   - A fencing token is written before the read, and that write is certified like any
//     other: whoever reads after it has seen all of the holder before.
func onGalera(e Entry) Entry {
	elsewhere := e.WaitsFor == ALock && e.Promise[promise.Rush] == verdict.Holds && !fences(e)
	if elsewhere {
		e = e.on(dialect.Galera, promised(e, verdict.Holds, without(promise.Played(), promise.Rush, promise.Units)), "")
	}
	if elsewhere && e.Promise[promise.TwoProcesses] == verdict.Holds {
		e = e.on(dialect.Galera, promised(e, verdict.Oversold, heldAtCommit()), "")
	}
	if elsewhere {
		e = e.on(dialect.GaleraOneWriter, promised(e, verdict.Holds, append(nodeFaults(), promise.DBNodeLag)), "")
	}
	for _, database := range []string{dialect.Galera, dialect.GaleraOneWriter} {
		if elsewhere && e.Leased && !e.Lock.Renewed {
			e = e.on(database, promised(e, verdict.Holds, killedNode()), verdict.Oversold)
		}
		if e.AdmitsFirst {
			e = e.on(database, nodeFaults(), "")
		}
	}
	return e
}

// lapses: the lease runs out while its holder's COMMIT waits for a node.
func lapses(e Entry, c promise.Condition, database string) bool {
	return dialect.Kind(database) == dialect.Galera && e.Leased && !e.Lock.Renewed && slices.Contains(nodeFaults(), c)
}

// fences: a holder that is late cannot write.
func fences(e Entry) bool { return slices.Contains(e.Lock.SharedUnder, promise.Pause) }

// promised are those of the conditions under which a verdict is promised on one server.
func promised(e Entry, v verdict.Verdict, conditions []promise.Condition) []promise.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c promise.Condition) bool { return e.Promise[c] != v })
}

func without(all []promise.Condition, but ...promise.Condition) []promise.Condition {
	return slices.DeleteFunc(slices.Clone(all), func(c promise.Condition) bool { return slices.Contains(but, c) })
}

// whyNotOnGalera is why there is no promise there; "" where there is another reason.
func whyNotOnGalera(e Entry, c promise.Condition, database string) string {
	switch {
	case e.LackedOn(database) != "":
		return e.LackedOn(database)
	case e.AdmitsFirst:
		return byChance
	case database == dialect.Galera && e.Promise[c] == verdict.Oversold:
		return "the COMMIT of a holder that is late is refused where another node has sold meanwhile, and only a stale read can still sell twice; whether one does is chance"
	case database == dialect.Galera:
		return "the next holder may be at a node that has not applied yet what the last one has committed, and write on what it has read there; how many do is chance"
	case e.Lock.Renewed || c == promise.DBNodeLag:
		return "each process leaves a lost node, and comes back to it, by itself: for seconds they are at two nodes, and the next holder may read what is old; whether one does is chance"
	case slices.Contains(silentNode(), c):
		return "a lease runs out while its holder's COMMIT waits, for a node that is given up or one that sends its files; whether somebody then reads before that COMMIT is chance"
	}
	return ""
}
