package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/load/quantile"
	"github.com/oversell/oversell/internal/plural"
	"github.com/oversell/oversell/internal/purchase"
)

// Progress describes how a burst of buyers progressed. It distinguishes a stuck strategy from a slow one,
// which serves a buyer now and then up to the end.
//
// A served buyer was sold a unit, was answered sold out, or lost its lock.
type Progress struct {
	// Usual is the median duration of the run's sales, 0 without sales. The duration begins at the later
	// of two moments: the buyer sends its request, or the shop serves the buyer before it.
	Usual time.Duration
	// Idle is the duration of one interval in which buyers waited and none was served. Among all such
	// intervals, this is the one in which this process, the judge, had a processor for the longest time.
	Idle time.Duration
	// Starved is the part of Idle in which the judge got no processor.
	Starved time.Duration
	// Waiting is the number of buyers that waited during the whole interval of Idle.
	Waiting int
	// Silence is the duration of the longest interval in which buyers waited and none was served. The judge
	// had no processor for the part SilenceStarved of it. Silence is longer than Idle only on a busy machine.
	Silence, SilenceStarved time.Duration
	// Starvation describes the judge's delays if it got no processor for at least half of the burst; otherwise
	// it is "".
	Starvation string
	// Early is the number of buyers that were answered busy in the first half of their maximum wait; 0 if that
	// wait is unknown. It leaves out buyers that were to come back after the end of the run (Retry-After).
	Early int
	// Lease is the duration of the run's leases; 0 if it is unknown. Wait is the time after which a buyer
	// gives up; 0 if it is unknown and no buyer gave up.
	Lease, Wait time.Duration
}

// slack limits the pauses of a slow strategy: it may serve no buyer for slack * Usual. On a machine that gave
// a process a fifth of two cores, single purchases took up to five times the median.
const slack = 10

// standstill is how long a busy machine may make no progress at all, for example because of its disk.
const standstill = time.Second

// ProgressOf computes the progress from a burst's answers, in any order. `lease` and `wait` become
// Progress.Lease and Progress.Wait. If `wait` is 0, ProgressOf derives Wait from the buyers that gave up.
// `starved` contains the delays of the judge's process during the burst.
//
// A buyer that gave up counts as waiting until its maximum wait was over, and not until its answer came.
// Buyers of a burst give up all at once, and a busy machine takes time to answer all of them.
func ProgressOf(answers []Answer, lease, wait time.Duration, starved pulse.Delays) Progress {
	p := Progress{Lease: lease, Wait: wait, Usual: Usual(answers)}
	served := servedAt(answers)
	patience := patienceOf(answers)
	if wait == 0 {
		p.Wait = patience
	}
	var since, until, first, last time.Time
	for _, a := range answers {
		if first.IsZero() || a.Start.Before(first) {
			first = a.Start
		}
		if a.End.After(last) {
			last = a.End
		}
		if a.Outcome == purchase.Busy && !a.IsDeferred && a.End.Sub(a.Start) < wait/2 {
			p.Early++
		}
		if isServed(a) || a.Outcome == purchase.Busy {
			from, to := a.idle(served, patience)
			silent := to.Sub(from)
			if silent <= p.Idle-p.Starved { // too short for a new Idle or Silence
				continue
			}
			delayed := starved.Within(from, to)
			if silent > p.Silence {
				p.Silence, p.SilenceStarved = silent, delayed
			}
			if silent-delayed > p.Idle-p.Starved {
				since, until = from, to
				p.Idle, p.Starved = silent, delayed
			}
		}
	}
	p.Starvation = starved.Mostly(first, last)
	p.Waiting = waitingFrom(answers, since, until)
	return p
}

func isServed(a Answer) bool {
	return a.Outcome == purchase.Sold || a.Outcome == purchase.SoldOut || a.Outcome == purchase.LockLost
}

// Usual returns the median duration of the sales among these answers, as in Progress.Usual.
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

func servedAt(answers []Answer) (served []time.Time) {
	for _, a := range answers {
		if isServed(a) {
			served = append(served, a.End)
		}
	}
	slices.SortFunc(served, time.Time.Compare)
	return served
}

// patienceOf returns the time after which a buyer gives up: the shortest wait of a buyer that was answered
// busy. It leaves out waits of at most half of the longest wait, since admission control has cut them short.
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

// idle returns the last part of a buyer's wait, during which no other buyer was served. It ends when the buyer
// was answered or gave up.
func (a Answer) idle(served []time.Time, patience time.Duration) (from, to time.Time) {
	to = a.End
	if over := a.Start.Add(patience); a.Outcome == purchase.Busy && over.Before(to) {
		to = over
	}
	from = a.Start
	next, _ := slices.BinarySearchFunc(served, to, time.Time.Compare) // served[next] is the first at or after to
	if next > 0 && served[next-1].After(from) {
		from = served[next-1]
	}
	return from, to
}

func waitingFrom(answers []Answer, from, to time.Time) (n int) {
	for _, a := range answers {
		if !a.Start.After(from) && !a.End.Before(to) {
			n++
		}
	}
	return n
}

// Bound returns the shortest time without a served buyer that shows a kept lock, one that its holder does not
// release. It is three quarters of the shorter of a lease and a buyer's wait. So a lock kept until its
// lease ends exceeds it. Bound is never less than pauses(). It is 0 if lease and wait are unknown.
//
// Half of the wait would be too short. With ZooKeeper on a tenth of one core, a working lock served no buyer
// for 3.1 s of a wait of 5 s.
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

// pauses returns how long a burst may serve no buyer without being stuck. A slow strategy has long pauses, and
// a busy machine may make no progress for a while.
func (p Progress) pauses() time.Duration { return max(slack*p.Usual, standstill) }

// Stuck returns a reason if no buyer was served for so long that only a kept lock explains it. Otherwise it
// returns "", also if a buyer's wait is too short to tell a kept lock from slow purchases. Time in which the
// judge got no processor does not count, since the shop got none either.
func (p Progress) Stuck() string {
	if !p.exceeds(p.Idle - p.Starved) {
		return ""
	}
	text := fmt.Sprintf("no buyer was served for %s while %s waited, and a purchase takes %s", inWords(p.Idle), plural.Count(p.Waiting, "buyer"), inWords(p.Usual))
	if p.Starved >= p.Idle/10 {
		text += fmt.Sprintf("; this process got no processor for %s of that time", inWords(p.Starved))
	}
	return text
}

// exceeds reports whether a time without a served buyer is at least Bound. It returns false if Bound is unknown.
func (p Progress) exceeds(silent time.Duration) bool {
	bound := p.Bound()
	return p.Usual > 0 && bound > 0 && silent >= bound
}

// starving returns a reason if the time without a served buyer exceeds Bound only because the machine was
// busy, otherwise "". In such a time, a kept lock cannot be seen.
func (p Progress) starving() string {
	if p.Stuck() != "" || !p.exceeds(p.Silence) {
		return ""
	}
	return fmt.Sprintf("no buyer was served for %s, and this process got no processor for %s of that time: the machine is too busy to tell slow from stuck",
		inWords(p.Silence), inWords(p.SilenceStarved))
}

// goesOn reports whether buyers were served without a long pause. It returns false if purchases take so long
// that a pause shows nothing.
func (p Progress) goesOn() bool {
	return p.Usual > 0 && p.Silence < p.pauses() && !p.cannotTell()
}

// cannotTell reports whether purchases take so long that a kept lock would look the same.
func (p Progress) cannotTell() bool { return p.Usual == 0 || p.Wait > 0 && p.pauses() > p.Wait }

// slow describes buyers that gave up although nothing was stuck.
func (p Progress) slow() string {
	switch {
	case p.Usual == 0:
		return "no buyer was sold anything, so the usual time of a purchase is unknown"
	case p.cannotTell():
		return fmt.Sprintf("a purchase takes %s here, so slow cannot be told from stuck: a longer --wait shows it", inWords(p.Usual))
	case p.goesOn():
		return fmt.Sprintf("other buyers were served meanwhile, with pauses of at most %s: slow, not stuck; a longer --wait shows more", inWords(p.Silence))
	}
	return fmt.Sprintf("no buyer was served for %s and a purchase takes %s, which is too little to tell slow from stuck: a longer --wait shows it", inWords(p.Silence), inWords(p.Usual))
}

func inWords(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func were[N int | int64](n N) string {
	return plural.Count(n, "buyer") + plural.Word(n, " was", " were")
}
