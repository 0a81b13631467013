package target

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

// A buyer with several commands at the gates may also have timers: a branch of its request pauses, and
// then sends on a connection of its own. How soon that is, in steps, depends on the speed of the machine.
// So the first run through a point decides which commands stand there, and later runs repeat that: they
// wait for a command that is missing, and leave out one that has come early. Each run is real; only the
// moment at which the search learns of the command is the same.

// Times for timers of a buyer that has commands at the gates.
const (
	shortTimer  = 500 * time.Millisecond // at a new point, a new timer is waited for if it ends within this
	mostTimers  = 2 * time.Second        // for all timers at one point, one after the other
	missedSleep = time.Second            // for a missing command, if a timer runs
	missed      = 200 * time.Millisecond // for a missing command, if no timer runs
)

// A memory holds what stood at the gates, by point. It stops at mostPoints, which take about 100 MB.
type memory map[point][]standing

const mostPoints = 1 << 20

// A point stands for the tokens of a schedule so far.
type point uint64

// after returns the point to which a token leads.
func (p point) after(token string) point {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, uint64(p), " ", token)
	return point(h.Sum64())
}

// A standing is a command at a gate.
type standing struct {
	what  uint64 // hash of its buyer and its name
	timed bool   // see op
}

func standingOf(o *op) standing {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, o.buyer, " ", o.name)
	return standing{h.Sum64(), o.timed}
}

// A window is the time in which a timer of an instance fires.
type window struct{ from, to time.Time }

// repeating makes a standstill have the commands that it had in earlier runs.
type repeating struct{ settling }

// repeat makes the commands at the gates those of the earlier runs. It is called at each point, when no
// buyer moves.
func (r repeating) repeat(ctx context.Context) error {
	if r.x.shared { // nothing tells which buyer a timer belongs to
		return nil
	}
	f := r.x.gateTable
	f.mu.Lock()
	r.mark(false)
	several := r.several()
	f.mu.Unlock()
	r.x.parallel = r.x.parallel || several
	if !r.x.parallel {
		return nil
	}
	known, is := r.x.memory[r.point]
	if is && !r.polling.Alone {
		return r.match(ctx, known)
	}
	if err := r.timers(ctx); err != nil {
		return err
	}
	r.remember()
	return nil
}

// several reports whether a buyer has several commands at the gates. It is called with gateTable.mu held.
func (r repeating) several() bool {
	held := r.x.gateTable.held
	for i := 1; i < len(held); i++ {
		if held[i].buyer == held[i-1].buyer {
			return true
		}
	}
	return false
}

// mark finds the commands that have come since the last point without a delivery to their buyer; with
// timed, all that have come. It is called with gateTable.mu held.
func (r repeating) mark(timed bool) {
	f := r.x.gateTable
	for _, o := range f.held {
		if !o.noted {
			o.noted, o.timed = true, timed || r.buyer(o.buyer).since <= r.before
		}
		o.late = false
	}
	r.before = r.handed
	inOrder(f.held)
}

// late reports whether a command waits for a later point.
func (r repeating) late() bool {
	f := r.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.held, func(o *op) bool { return o.late })
}

// timers waits for new timers of the program that has continued last, so that a point of the search has
// all commands that come without an answer.
func (r repeating) timers(ctx context.Context) error {
	f := r.x.gateTable
	i := r.x.instances.of(max(r.current, 1))
	for begun := time.Now(); i.up() && time.Since(begun) < mostTimers; {
		left, timed := i.program.Soonest()
		now := time.Now()
		f.mu.Lock()
		due := window{f.last.Add(left), now.Add(left)}
		f.mu.Unlock()
		isNew := timed && left <= shortTimer && i.due.from.After(due.to)
		if i.due = (window{}); timed {
			i.due = due
		}
		if !isNew {
			return nil
		}
		for seq := f.moves(); f.moves() == seq && time.Now().Before(due.to.Add(look)); time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		f.wake()
		if err := r.settle(ctx); err != nil {
			return err
		}
		f.mu.Lock()
		r.mark(true)
		f.mu.Unlock()
	}
	return nil
}

// remember records what stands at the gates.
func (r repeating) remember() {
	f := r.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.polling.Alone || len(r.x.memory) >= mostPoints {
		return
	}
	all := make([]standing, 0, len(f.held))
	for _, o := range f.held {
		all = append(all, standingOf(o))
	}
	r.x.memory[r.point] = all
}

// match waits until the known commands stand at the gates, and marks the others as late. If one does not
// come, the program has taken another course.
func (r repeating) match(ctx context.Context, known []standing) error {
	f := r.x.gateTable
	for begun := time.Now(); ; {
		f.mu.Lock()
		r.mark(false)
		missing := r.compare(known)
		f.mu.Unlock()
		if !missing {
			return nil
		}
		took := time.Since(begun)
		if took > missedSleep || took > missed && !r.x.instances.sleeps() {
			f.mu.Lock()
			r.mark(false)
			f.mu.Unlock()
			r.remember()
			return nil
		}
		for seq := f.moves(); f.moves() == seq && time.Since(begun) < took+missed; time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		f.wake()
		if err := r.settle(ctx); err != nil {
			return err
		}
	}
}

// compare reports whether a known command is missing. If none is, it marks the commands that are not
// known as late. It is called with gateTable.mu held.
func (r repeating) compare(known []standing) (missing bool) {
	f := r.x.gateTable
	rest := slices.Clone(known)
	var late []*op
	for _, o := range f.held {
		at := slices.IndexFunc(rest, func(s standing) bool { return s.what == standingOf(o).what })
		if at < 0 {
			late = append(late, o)
			continue
		}
		o.timed = rest[at].timed
		rest = slices.Delete(rest, at, at+1)
	}
	if len(rest) > 0 {
		return true
	}
	if len(known) > 0 { // otherwise the run would end
		for _, o := range late {
			o.late = true
		}
	}
	inOrder(f.held)
	return false
}
