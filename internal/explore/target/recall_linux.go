package target

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/process"
)

// A buyer with a command at the gates, or with its answer, may also have timers: a branch of its request
// pauses, and then sends on a connection of its own. How soon that is, in steps, depends on the speed of
// the machine. So the first run through a point decides which commands stand there, and later runs repeat
// that: they wait for a command that is missing, and leave out one that has come early. Each run is real;
// only the moment at which the search learns of the command is the same.

// Times for timers of a buyer that has commands at the gates.
const (
	shortTimer = 500 * time.Millisecond // at a new point, a new timer is waited for if it ends within this
	briefTimer = 5 * time.Millisecond   // at a new point, any timer is waited for if it ends within this
	mostTimers = 2 * time.Second        // for all timers at one point, one after the other
	missedNap  = time.Second            // for a missing command, if a timer runs
	missed     = 200 * time.Millisecond // for a missing command, if no timer runs
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

// repeat makes the commands at the gates those of the earlier runs. It is called at each point, when no
// buyer moves.
func (r settling) repeat(ctx context.Context) error {
	if r.x.shared { // nothing tells which buyer a timer belongs to
		return nil
	}
	f := r.x.floor
	f.mu.Lock()
	r.mark(false)
	f.mu.Unlock()
	known, is := r.x.memory[r.point]
	if is && !r.polling.alone {
		return r.match(ctx, known)
	}
	if err := r.timers(ctx); err != nil {
		return err
	}
	r.remember()
	return nil
}

// forget drops what the run has recorded. A discarded run is no model for later runs.
func (r settling) forget() {
	for _, p := range r.visited {
		delete(r.x.memory, p)
	}
}

// mark finds the commands that have come since the last point without a delivery to their buyer; with
// timed, all that have come. It is called with floor.mu held.
func (r settling) mark(timed bool) {
	f := r.x.floor
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
func (r settling) late() bool {
	f := r.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.held, func(o *op) bool { return o.late })
}

// timers waits for new timers of the programs, so that a point of the search has all commands that come
// without an answer.
func (r settling) timers(ctx context.Context) error {
	for _, i := range r.x.fleet.all {
		var fires time.Time // the earliest moment at which the last new timer fires
		for begun := time.Now(); i.up() && time.Since(begun) < mostTimers; {
			t, isNew := r.next(i)
			cause := r.cause(i, t)
			if isNew && r.x.futile[cause] < mostFutile {
				fires = i.due.from
			} else if t.Idle || t.Left > shortTimer || time.Now().After(fires) {
				break
			}
			seq := r.x.floor.moves()
			if err := r.fires(ctx, i, t); err != nil {
				return err
			}
			if r.x.floor.moves() == seq {
				r.x.futile[cause]++
			} else {
				r.x.futile[cause] = -mostPoints
			}
		}
	}
	return nil
}

// A cause identifies the timers that a program sets after an answer, by their size.
type cause uint64

func (r settling) cause(i *instance, t process.Timer) cause {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, i.buyer, " ", r.buyer(i.buyer).last, " ", bits.Len64(uint64(t.Left/time.Millisecond)))
	return cause(h.Sum64())
}

// mostFutile is the number of times that a timer with the same cause is waited for although nothing
// follows: for example the time limit of a call.
const mostFutile = 2

// next returns the next timer of an idle program, and whether it is new since the last call: it will fire
// well before the earlier one. An event loop fires a timer late by the time that it has worked, so a
// smaller difference tells nothing.
func (r settling) next(i *instance) (t process.Timer, isNew bool) {
	t, timed := i.program.Soonest()
	now := time.Now()
	if !timed {
		i.timer, i.due = process.Timer{Idle: true}, window{}
		return i.timer, false
	}
	if t.Continues(i.timer) {
		return t, false
	}
	r.x.floor.mu.Lock()
	due := window{r.x.floor.last.Add(t.Left), now.Add(t.Left)}
	r.x.floor.mu.Unlock()
	rest := i.due.from.Sub(now) // of the earlier timer
	if rest <= 0 {              // it has fired, or there was none
		rest = i.timer.Left
	}
	i.timer, i.due = t, due
	return t, !t.Idle && (t.Left <= briefTimer || t.Left <= shortTimer && 2*t.Left < rest)
}

// look records the next timers of the programs.
func (r settling) look() {
	for _, i := range r.x.fleet.all {
		if i.up() && !r.x.shared {
			r.next(i)
		}
	}
}

// fires waits until a timer has fired, or its program has received something, and what follows from
// that. The time alone does not tell: on a busy machine, a timer fires late.
func (r settling) fires(ctx context.Context, i *instance, t process.Timer) error {
	f := r.x.floor
	late := time.Now().Add(t.Left + mostTimers)
	for seq := f.moves(); f.moves() == seq && i.program.Pending(t) && time.Now().Before(late); time.Sleep(time.Millisecond) {
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
	return nil
}

// remember records what stands at the gates.
func (r settling) remember() {
	f := r.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.polling.alone || len(r.x.memory) >= mostPoints {
		return
	}
	all := make([]standing, 0, len(f.held))
	for _, o := range f.held {
		all = append(all, standingOf(o))
	}
	r.x.memory[r.point] = all
	r.visited = append(r.visited, r.point)
}

// match waits until the known commands stand at the gates, and marks the others as late. If one does not
// come, the program has taken another course in this run.
func (r settling) match(ctx context.Context, known []standing) error {
	f := r.x.floor
	waited := false // for the timers, as in the first run through the point
	for begun := time.Now(); ; {
		f.mu.Lock()
		r.mark(false)
		missing := r.compare(known)
		f.mu.Unlock()
		took := time.Since(begun)
		switch {
		case !missing:
			r.look()
			return nil
		case !waited:
			waited = true
			if err := r.timers(ctx); err != nil {
				return err
			}
			continue
		case took > missedNap, took > missed && !r.x.fleet.naps():
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
// known as late. It is called with floor.mu held.
func (r settling) compare(known []standing) (missing bool) {
	f := r.x.floor
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
	waits := func(b *buyer) bool { return b.alive && !b.crashed }
	if len(known) > 0 || !slices.ContainsFunc(r.buyers, waits) { // otherwise a buyer would wait forever
		for _, o := range late {
			o.late = true
		}
	}
	inOrder(f.held)
	return false
}
