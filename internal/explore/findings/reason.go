package findings

import (
	"fmt"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/plural"
)

// A Reason explains why a search without a violation proves nothing. The command then ends with exit code 3.
type Reason struct {
	Name    string // name in the table of docs/design/explorer.md
	applies func(explore.Report) bool
	why     func(explore.Report) string // explains the reason, with advice
}

const notFound = "nothing was found, but "

const discardedPage = "see docs/design/programs.md#discarded-runs"

// OneSchedule is the name of the last reason, which counts only if no other reason applies.
const OneSchedule = "one schedule"

// Reasons returns all reasons. A report names only the first that applies.
func Reasons() []Reason {
	return []Reason{
		{"not confirmed", func(r explore.Report) bool { return r.Dropped+r.Unconfirmed > 0 }, func(r explore.Report) string {
			return fmt.Sprintf("not confirmed: %s seen, and no replay broke again; %s", plural.Count(r.Dropped+r.Unconfirmed, "violation"), discardedPage)
		}},
		{"not confirmed", func(r explore.Report) bool { return r.Racing != "" }, func(r explore.Report) string {
			return "not confirmed: no schedule of all buyers broke, but " + r.Racing
		}},
		{"discarded", func(r explore.Report) bool { return r.Void > 0 }, func(r explore.Report) string {
			return fmt.Sprintf(notFound+"%s discarded, so this is no proof%s; %s", plural.Count(r.Void, "run"), byItself(r), discardedPage)
		}},
		{"ignored", func(r explore.Report) bool { return len(r.Ignored) > 0 }, func(r explore.Report) string {
			return notFound + "`ignore` of the file passes a command that matters, so its order was not explored: write a narrower entry; " + r.Ignored[0]
		}},
		{"late", func(r explore.Report) bool { return r.Late }, func(r explore.Report) string {
			return notFound + "a timer of the program sent a command at different steps, so not every order with it was explored: remove the pause for the test" + byItself(r)
		}},
		{"unforeseen", func(r explore.Report) bool { return r.Unforeseen != "" }, func(r explore.Report) string {
			return notFound + r.Unforeseen + "; --full explores every order"
		}},
		{"gives up", func(r explore.Report) bool { return r.GaveUp != "" }, func(r explore.Report) string {
			return notFound + r.GaveUp
		}},
		{"too many steps", func(r explore.Report) bool { return r.Cut > 0 }, func(r explore.Report) string {
			return fmt.Sprintf(notFound+"%s had too many steps and ended early: shorten the retries of the buyers, or lower --tries", plural.Count(r.Cut, "schedule"))
		}},
		{"budget", func(r explore.Report) bool { return !r.Complete }, func(explore.Report) string {
			return notFound + "the search is incomplete; raise --budget or --max-schedules, or lower --bound"
		}},
		{"pauses", func(r explore.Report) bool { return len(r.Pauses) > 0 && !r.ShortAccepted }, func(r explore.Report) string {
			return notFound + "a pause of the program was too short for another buyer to move, so the choice of the next pooled connection was not explored: lengthen the pause for the test, or set `pauses: accepted` in the file; the pause followed " + r.Pauses[0]
		}},
		{"divided", func(r explore.Report) bool { return len(r.Divided) > 0 && !r.Atomic }, divided},
		{"stray release", func(r explore.Report) bool { return r.Stray != "" }, func(r explore.Report) string {
			return notFound + "a lock of a session is released, or may be, on a connection that does not hold it: keep one connection from the lock to its release, let the pooler lend connections for a session, or take a lock of the transaction; the command is " + r.Stray
		}},
		{"no event", explore.Report.Empty, explore.Report.WhyEmpty},
		{OneSchedule, func(r explore.Report) bool { return ofProgram(r) && r.Explored < 2 }, func(explore.Report) string {
			return "the result proves nothing: there is only one schedule, since no command of a buyer can change what another buyer's uses; --app-check shows which commands reach the gates"
		}},
	}
}

// byItself returns advice for a program that sends commands while no buyer's request is under way; "" for
// other programs.
func byItself(r explore.Report) string {
	if !r.Polls {
		return ""
	}
	return "; the program sends commands by itself: --app-check prints the line `ignore:` that lets them pass"
}

func divided(r explore.Report) string {
	if !r.Overlap && r.Holdable {
		overlap := "add --overlap; or "
		if r.Shared {
			overlap = "" // App.CheckOverlap forbids --overlap here
		}
		return fmt.Sprintf(notFound+"a statement that reads and writes was one step, so another buyer's write inside it was not explored: %slock the rows that it reads; or, if your server lets no write in, set `atomic: accepted` in the file; the statement is %s", overlap, r.Divided[0])
	}
	return notFound + "a statement reads and writes in a way that --overlap cannot hold, so a deadlock inside it, or a write between its parts, was not explored: have the program repeat it after a deadlock, or lock the rows that it reads, always in one order, and set `atomic: accepted` in the file; the statement is " + r.Divided[0]
}

// First returns the first reason that applies; nil if the search proves something.
func First(r explore.Report) *Reason {
	for _, reason := range Reasons() {
		if reason.applies(r) {
			return &reason
		}
	}
	return nil
}

// Unproven says why a search proves nothing although it found no violation; "" if it proves something.
func Unproven(r explore.Report) string {
	if first := First(r); first != nil {
		return r.Strategy + ": " + first.why(r)
	}
	return ""
}
