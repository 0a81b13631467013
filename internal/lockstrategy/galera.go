package lockstrategy

import (
	"slices"

	"github.com/oversell/oversell/internal/dialect"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/verdict"
)

// nodeFaults are those under which a Galera cluster loses a node that takes COMMITs. Until
// the others have given it up (evs.suspect_timeout, 5 s unless set) nobody's COMMIT returns.
func nodeFaults() []promise.Condition {
	return []promise.Condition{
		promise.DBKill, promise.DBNodeKill, promise.DBNodeFreeze, promise.DBNodeCut, promise.DBNodeRejoin, promise.DBClusterRestart,
	}
}

// onGalera says what differs on a Galera cluster. It follows from what a strategy rests on:
//
//   - SQL that the database decides on holds: a COMMIT that rests on a row which another
//     node has written is refused (1213), and the strategy starts again.
//   - A lock that is kept elsewhere excludes others, and its next holder may be at a node
//     that has not applied yet what the last one has committed (TestGaleraStaleRead). With
//     one writer there is no such node.
//   - A lease that nobody renews runs out inside a COMMIT that waits for a node that is
//     dead, with one writer or three.
//   - A fencing token is written before the read, and that write is certified like any
//     other: whoever reads after it has seen all of the holder before.
func (e Entry) onGalera() Entry {
	elsewhere := e.WaitsFor == ALock && e.Promise[promise.Rush] == verdict.Holds && !e.fences()
	if elsewhere && e.Leased && !e.Lock.Renewed {
		for _, database := range []string{dialect.Galera, dialect.GaleraOneWriter} {
			e = e.on(database, e.held(nodeFaults()), verdict.Oversold)
		}
	}
	if elsewhere {
		e = e.on(dialect.Galera, e.held(without(promise.Played(), promise.Rush, promise.Units)), "")
	}
	if e.AdmitsFirst {
		for _, database := range []string{dialect.Galera, dialect.GaleraOneWriter} {
			e = e.on(database, nodeFaults(), "")
		}
	}
	return e
}

// fences: a holder that is late cannot write.
func (e Entry) fences() bool { return slices.Contains(e.Lock.SharedUnder, promise.Pause) }

// held are those of the conditions under which it holds on one server.
func (e Entry) held(conditions []promise.Condition) []promise.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c promise.Condition) bool { return e.Promise[c] != verdict.Holds })
}

func without(all []promise.Condition, but ...promise.Condition) []promise.Condition {
	return slices.DeleteFunc(slices.Clone(all), func(c promise.Condition) bool { return slices.Contains(but, c) })
}

// whyNotOnGalera is why there is no promise there; "" where there is another reason.
func (e Entry) whyNotOnGalera(database string) string {
	switch {
	case e.lackedOn(database) != "":
		return e.lackedOn(database)
	case e.AdmitsFirst:
		return byChance
	case database == dialect.Galera:
		return "the next holder may be at a node that has not applied yet what the last one has committed, and write on what it has read there; how many do is chance"
	}
	return ""
}
