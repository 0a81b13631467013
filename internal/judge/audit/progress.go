package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/load/quantile"
	"github.com/oversell/oversell/internal/purchase"
)

// Progress is how a crowd got on. It tells a strategy that is stuck from one that is
// slow: under a slow one somebody is served every now and then, up to the end.
//
// Served is who was sold a unit, was told that all are sold, or lost its lock.
type Progress struct {
	// Usual is what a purchase takes in this run: the median time from when the one before
	// was served, or from a buyer's own start if that was later, to its sale. 0 when nobody
	// was sold anything.
	Usual time.Duration
	// Idle is the longest time in which somebody waited and nobody was served.
	Idle time.Duration
	// Waiting is how many waited all that time.
	Waiting int
	// Early is how many were told busy before half of their wait was over, where the wait
	// is known. Buyers that come back after Retry-After do not count.
	Early int
	// Lease is the lease of the run's locks, 0 where it is not known. Wait is how long a
	// buyer waits, 0 where it is not known and nobody gave up.
	Lease, Wait time.Duration
}

// slack is how many times as long as usual a wait must be before it is taken for more
// than a slow one. A machine that gives a process a fifth of two cores was seen to
// stretch single purchases to five times the median.
const slack = 10

// standstill is how long a busy machine may do nothing at all, its disk included.
const standstill = time.Second

// ProgressOf reads it from a crowd's answers, in any order. lease and wait are as in
// Progress; a wait that is not known is taken from those who gave up.
//
// The wait of a buyer who gave up counts up to the moment when its patience was over,
// not until it was told so: a crowd gives up at once, and a busy machine takes its time
// to tell everybody.
func ProgressOf(answers []Answer, lease, wait time.Duration) Progress {
	p := Progress{Lease: lease, Wait: wait, Usual: Usual(answers)}
	served := servedAt(answers)
	patience := patienceOf(answers)
	if wait == 0 {
		p.Wait = patience
	}
	var since, until time.Time
	for _, a := range answers {
		if a.Outcome == purchase.Busy && !a.IsDeferred && a.End.Sub(a.Start) < wait/2 {
			p.Early++
		}
		if isServed(a) || a.Outcome == purchase.Busy {
			from, to := a.idle(served, patience)
			if to.Sub(from) > until.Sub(since) {
				since, until = from, to
			}
		}
	}
	p.Idle, p.Waiting = until.Sub(since), waitingFrom(answers, since, until)
	return p
}

func isServed(a Answer) bool {
	return a.Outcome == purchase.Sold || a.Outcome == purchase.SoldOut || a.Outcome == purchase.LockLost
}

// Usual is Progress.Usual of these answers.
func Usual(answers []Answer) time.Duration {
	served := servedAt(answers)
	var took []time.Duration
	for _, a := range answers {
		if a.Outcome == purchase.Sold {
			from, to := a.idle(served, 0)
			took = append(took, to.Sub(from))
		}
	}
	slices.Sort(took)
	return quantile.Of(took, 0.5)
}

// servedAt are the times at which somebody was served, in order.
func servedAt(answers []Answer) (served []time.Time) {
	for _, a := range answers {
		if isServed(a) {
			served = append(served, a.End)
		}
	}
	slices.SortFunc(served, time.Time.Compare)
	return served
}

// patienceOf is how long those waited who gave up: the least of the waits that are more
// than half of the longest. Shorter ones were turned away at the door.
func patienceOf(answers []Answer) (patience time.Duration) {
	var longest time.Duration
	for _, a := range answers {
		if a.Outcome == purchase.Busy {
			longest = max(longest, a.End.Sub(a.Start))
		}
	}
	patience = longest
	for _, a := range answers {
		if took := a.End.Sub(a.Start); a.Outcome == purchase.Busy && took > longest/2 {
			patience = min(patience, took)
		}
	}
	return patience
}

// idle is the last stretch of a buyer's wait: since anybody else was served, up to its
// own turn, or until it gave up.
func (a Answer) idle(served []time.Time, patience time.Duration) (from, to time.Time) {
	to = a.End
	if over := a.Start.Add(patience); a.Outcome == purchase.Busy && over.Before(to) {
		to = over
	}
	from = a.Start
	next, _ := slices.BinarySearchFunc(served, to, time.Time.Compare) // the first that is not before to
	if next > 0 && served[next-1].After(from) {
		from = served[next-1]
	}
	return from, to
}

// waitingFrom counts the buyers who waited from one moment to the other.
func waitingFrom(answers []Answer, from, to time.Time) (n int) {
	for _, a := range answers {
		if !a.Start.After(from) && !a.End.Before(to) {
			n++
		}
	}
	return n
}

// Bound is the least time without anybody served that is taken for a lock that is kept:
// three quarters of a lease, so that one that is kept until its lease ends is seen, or
// of a buyer's wait, whichever is less. 0 where neither is known.
//
// Half of a wait is too little: a buyer who came after 150 who had given up on a
// ZooKeeper that had a tenth of one core waited for 3.1 s of 5.
func (p Progress) Bound() time.Duration {
	least := min(p.Lease, p.Wait)
	if p.Lease == 0 || p.Wait == 0 {
		least = max(p.Lease, p.Wait)
	}
	if least == 0 {
		return 0
	}
	return max(least*3/4, p.pauses())
}

// pauses is how long nobody may be served while a crowd gets on: a slow one has long
// pauses, and a busy machine may stand still.
func (p Progress) pauses() time.Duration { return max(slack*p.Usual, standstill) }

// Stuck says that nobody was served for longer than anything explains but a lock that is
// kept, "" when that is not so. Where a purchase takes so long that every wait ends
// before it could be told, nothing is stuck.
func (p Progress) Stuck() string {
	if bound := p.Bound(); p.Usual == 0 || bound == 0 || p.Idle < bound {
		return ""
	}
	return fmt.Sprintf("nobody was served for %s while %s waited, and a purchase takes %s", inWords(p.Idle), buyers(p.Waiting), inWords(p.Usual))
}

// goesOn reports whether somebody was served all the time, as far as can be told.
func (p Progress) goesOn() bool { return p.Usual > 0 && p.Idle < p.pauses() && !p.cannotTell() }

// cannotTell reports whether purchases take so long that a lock that is kept would look
// the same.
func (p Progress) cannotTell() bool { return p.Usual == 0 || p.Wait > 0 && p.pauses() > p.Wait }

// slow says what is known of buyers who gave up though nothing was stuck.
func (p Progress) slow() string {
	switch {
	case p.Usual == 0:
		return "nobody was sold anything, so it is not known what a purchase takes"
	case p.cannotTell():
		return fmt.Sprintf("a purchase takes %s here, so slow cannot be told from stuck: a longer --wait shows it", inWords(p.Usual))
	case p.goesOn():
		return fmt.Sprintf("others were served meanwhile, nobody for %s at most: slow, not stuck; a longer --wait shows more", inWords(p.Idle))
	}
	return fmt.Sprintf("nobody was served for %s and a purchase takes %s, which is too little to tell slow from stuck: a longer --wait shows it", inWords(p.Idle), inWords(p.Usual))
}

// inWords is a time that a person reads.
func inWords(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func buyers(n int) string {
	if n == 1 {
		return "1 buyer"
	}
	return fmt.Sprintf("%d buyers", n)
}

func were(n int) string {
	if n == 1 {
		return "1 buyer was"
	}
	return fmt.Sprintf("%d buyers were", n)
}
