package lockstrategy

import (
	"slices"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// killedNode lists the faults that kill the shops' node of the cluster, so that the shops connect to another
// node. No COMMIT on that node returns until the cluster has expelled the dead node (evs.suspect_timeout, 5 s
// by default).
func killedNode() []promise.Condition { return []promise.Condition{promise.DBKill, promise.DBNodeKill} }

func nodeFaults() []promise.Condition {
	return append(killedNode(), promise.DBNodeFreeze, promise.DBNodeCut, promise.DBNodeRejoin, promise.DBClusterRestart)
}

// heldAtCommit lists the faults that may stop a holder in its COMMIT, after its write has locked the row at
// its own node. If another node sells meanwhile, the cluster refuses the stopped COMMIT. If the fault stops
// the holder before its write, the cluster refuses nothing.
func heldAtCommit() []promise.Condition {
	return []promise.Condition{promise.Pause, promise.RedisRestart, promise.RedisFailover, promise.NodeRestart, promise.ClockJump, promise.ClientClock}
}

// onGalera adjusts the promises to a Galera cluster:
//
//   - A strategy that relies on SQL alone holds. The cluster refuses a COMMIT if another node has
//     written the same row (1213), and the strategy starts again.
//   - A lock outside the database excludes other buyers. But the next holder may read from a node that has not
//     yet applied the previous holder's commit (TestGaleraStaleRead).
//   - A lease that is not renewed expires during a COMMIT that waits for a dead node.
//   - A fencing token is written before the read, and the cluster certifies that write like any other. So a
//     holder that sees its own token in the row also sees all writes of earlier holders.
func onGalera(e Entry) Entry {
	elsewhere := e.WaitsFor == WaitLock && e.Promise[promise.Rush] == verdict.Holds && !fences(e)
	if elsewhere {
		e = e.withPromiseOn(dialect.Galera, promised(e, verdict.Holds, without(promise.Played(), promise.Rush, promise.Units)), "")
	}
	if elsewhere && e.Promise[promise.TwoProcesses] == verdict.Holds {
		e = e.withPromiseOn(dialect.Galera, promised(e, verdict.Oversold, heldAtCommit()), "")
	}
	if elsewhere && e.Leased && !e.Lock.Renewed {
		e = e.withPromiseOn(dialect.Galera, promised(e, verdict.Holds, killedNode()), verdict.Oversold)
	}
	if e.AdmitsFirst && e.Promise[promise.Rush] == verdict.Holds {
		e = e.withPromiseOn(dialect.Galera, nodeFaults(), "")
	}
	return e
}

// lapses reports whether, under the condition c, the lease expires while its holder's COMMIT waits for a node.
func lapses(e Entry, c promise.Condition, database string) bool {
	return dialect.Kind(database) == dialect.Galera && e.Leased && !e.Lock.Renewed && slices.Contains(nodeFaults(), c)
}

// fences reports whether the strategy rejects the write of a late holder.
func fences(e Entry) bool { return slices.Contains(e.Lock.SharedUnder, promise.Pause) }

// promised returns those of the conditions under which the entry promises the verdict v on a single server.
func promised(e Entry, v verdict.Verdict, conditions []promise.Condition) []promise.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c promise.Condition) bool { return e.Promise[c] != v })
}

func without(all []promise.Condition, but ...promise.Condition) []promise.Condition {
	return slices.DeleteFunc(slices.Clone(all), func(c promise.Condition) bool { return slices.Contains(but, c) })
}

// whyNotOnGalera says why the catalogue promises nothing under the condition c on Galera.
func whyNotOnGalera(e Entry, c promise.Condition, database string) string {
	switch {
	case e.LackedOn(database) != "":
		return e.LackedOn(database)
	case e.AdmitsFirst:
		return byChance
	case e.Promise[c] == verdict.Oversold:
		return "the cluster refuses the COMMIT of a late holder if another node has sold in between, so only a stale read can oversell; whether one occurs is chance"
	}
	return "the next holder may read from a node that has not applied the previous commit yet, and write a stock computed from the old one; the number of such holders is chance"
}
