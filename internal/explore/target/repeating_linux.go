package target

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/instance"
	"github.com/oversell/oversell/internal/explore/target/rest"
)

// A buyer with several commands at the gates may also have timers: a branch of its request pauses, and then
// sends on a connection of its own. The speed of the machine decides after how many steps that command comes.
// So the first run through a point decides which commands wait there, and later runs repeat this: they wait
// for a missing command, and hold back one that came early. The commands are real in each run; only the step
// at which the search sees them is made equal.

// Times for timers of a buyer that has commands at the gates.
const (
	shortTimer  = 500 * time.Millisecond // at a new point, a new timer is waited for if it ends within this
	mostTimers  = 2 * time.Second        // for all timers at one point, one after the other
	missedSleep = time.Second            // for a missing command, if a timer runs
	missed      = 200 * time.Millisecond // for a missing command, if no timer runs
)

// A memory holds what stood at the gates, by point, for all runs. It stops recording after mostPoints points,
// which take about 100 MB.
type memory struct {
	points   map[point][]standing
	parallel bool                          // a buyer has had several commands at the gates
	due      map[*instance.Instance]window // of the next timer at the last point
}

func newMemory() memory {
	return memory{points: map[point][]standing{}, due: map[*instance.Instance]window{}}
}

const mostPoints = 1 << 20

// A point is a hash of the tokens of a schedule so far.
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

func standingOf(o *gates.Op) standing {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, o.Buyer, " ", o.Name)
	return standing{h.Sum64(), o.Timed}
}

// A window is the time in which a timer of an instance fires.
type window struct{ from, to time.Time }

// repeating gives each standstill the same commands that it had in earlier runs. It belongs to one run, and
// knows the point of that run.
type repeating struct {
	gates     *gates.Gates
	instances *instance.Instances
	buyers    *client.Buyers
	settling  *rest.Settling
	memory    *memory
	alone     bool // one buyer runs alone, so the points are not those of the search

	point  point // the steps so far
	before int   // number of deliveries at the last point
}

// leaves records that the run leaves its point by a choice.
func (r *repeating) leaves(token string) { r.point = r.point.after(token) }

// repeat makes the commands at the gates those of the earlier runs. It is called at each point, when no
// buyer moves.
func (r *repeating) repeat(ctx context.Context) error {
	if r.instances.Shared() { // nothing tells which buyer a timer belongs to
		return nil
	}
	r.memory.parallel = several(r.mark(false)) || r.memory.parallel
	if !r.memory.parallel {
		return nil
	}
	known, is := r.memory.points[r.point]
	if is && !r.alone {
		return r.match(ctx, known)
	}
	if err := r.timers(ctx); err != nil {
		return err
	}
	r.remember()
	return nil
}

// several reports whether a buyer has several of the held commands.
func several(held []*gates.Op) bool {
	for i := 1; i < len(held); i++ {
		if held[i].Buyer == held[i-1].Buyer {
			return true
		}
	}
	return false
}

// mark finds the commands of timers: those that have come since the last point although nothing was delivered
// to their buyer. With timed, all that have come count. It returns the held commands.
func (r *repeating) mark(timed bool) []*gates.Op {
	for _, o := range r.gates.Table.Now().Held {
		if !o.Noted {
			o.Noted, o.Timed = true, timed || r.buyers.Of(o.Buyer).Since <= r.before
		}
		o.Late = false
	}
	r.before = r.buyers.Handed
	r.gates.Table.Arrange()
	return r.gates.Table.Now().Held
}

// timers waits for new timers of the program that has continued last, so that a point of the search has
// all commands that come without an answer.
func (r *repeating) timers(ctx context.Context) error {
	pulse := r.gates.Pulse
	i := r.instances.Of(max(r.buyers.Current, 1))
	for begun := time.Now(); i.Up() && time.Since(begun) < mostTimers; {
		left, timed := i.Program.Soonest()
		now := time.Now()
		due := window{pulse.Last().Add(left), now.Add(left)}
		isNew := timed && left <= shortTimer && r.memory.due[i].from.After(due.to)
		if r.memory.due[i] = (window{}); timed {
			r.memory.due[i] = due
		}
		if !isNew {
			return nil
		}
		if err := r.settles(ctx, due.to.Add(rest.Look)); err != nil {
			return err
		}
		r.mark(true)
	}
	return nil
}

// settles waits until something happens, or until the time then, and takes the run to the next standstill.
func (r *repeating) settles(ctx context.Context, then time.Time) error {
	pulse := r.gates.Pulse
	for seq := pulse.Moves(); pulse.Moves() == seq && time.Now().Before(then); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	pulse.Wake()
	return r.settling.Settle(ctx)
}

// remember records what stands at the gates.
func (r *repeating) remember() {
	if r.alone || len(r.memory.points) >= mostPoints {
		return
	}
	held := r.gates.Table.Now().Held
	all := make([]standing, 0, len(held))
	for _, o := range held {
		all = append(all, standingOf(o))
	}
	r.memory.points[r.point] = all
}

// match waits until the known commands stand at the gates, and marks the others as late. If one does not
// come, the program has taken another course.
func (r *repeating) match(ctx context.Context, known []standing) error {
	for begun := time.Now(); ; {
		if !r.compare(r.mark(false), known) {
			return nil
		}
		took := time.Since(begun)
		if took > missedSleep || took > missed && !r.instances.Sleeps() {
			r.mark(false)
			r.remember()
			return nil
		}
		if err := r.settles(ctx, begun.Add(took+missed)); err != nil {
			return err
		}
	}
}

// compare reports whether a known command is missing among the held ones. If none is, it marks the commands
// that are not known as late.
func (r *repeating) compare(held []*gates.Op, known []standing) (missing bool) {
	rest := slices.Clone(known)
	var late []*gates.Op
	for _, o := range held {
		at := slices.IndexFunc(rest, func(s standing) bool { return s.what == standingOf(o).what })
		if at < 0 {
			late = append(late, o)
			continue
		}
		o.Timed = rest[at].timed
		rest = slices.Delete(rest, at, at+1)
	}
	if len(rest) > 0 {
		return true
	}
	if len(known) > 0 { // otherwise the run would end
		for _, o := range late {
			o.Late = true
		}
	}
	r.gates.Table.Arrange()
	return false
}
