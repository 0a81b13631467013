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

// The gates hold each buyer's commands. A buyer with several commands there may also have timers. For example, one
// branch of its request pauses, and then sends a command on its own connection. The speed of the machine decides after
// how many steps that command comes, but the search must see it at the same step in every run. So the first run that
// reaches a point of the schedule decides which commands wait there. Later runs wait for a missing command, and hold
// back an early one.

// Times for the timers of a buyer that has commands at the gates.
const (
	shortTimer  = 500 * time.Millisecond // the first run at a point waits for new timers that fire within this time
	mostTimers  = 2 * time.Second        // maximum wait for all timers at one point
	missedSleep = time.Second            // maximum wait for a missing command, if a timer runs
	missed      = 200 * time.Millisecond // maximum wait for a missing command, if no timer runs
)

// A memory records, for all runs, which commands were at the gates at each point of the schedules. After mostPoints
// points, which take about 100 MB, it records no more.
type memory struct {
	points   map[point][]heldCommand
	parallel bool                          // some buyer has had several commands at the gates at the same time
	due      map[*instance.Instance]window // by instance: when its next timer fires, as estimated at the last point
}

func newMemory() memory {
	return memory{points: map[point][]heldCommand{}, due: map[*instance.Instance]window{}}
}

const mostPoints = 1 << 20

// A point identifies a place in a schedule. It is a hash of the tokens (names of the chosen steps) up to there.
type point uint64

// after returns the point that follows when a run chooses the step `token`.
func (p point) after(token string) point {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, uint64(p), " ", token)
	return point(h.Sum64())
}

type heldCommand struct {
	what  uint64 // hash of the command's buyer and name
	timed bool   // a timer of the program sent the command
}

func heldCommandOf(o *gates.Op) heldCommand {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, o.Buyer, " ", o.Name)
	return heldCommand{h.Sum64(), o.Timed}
}

// A window is the interval of time in which the next timer of an instance fires.
type window struct{ from, to time.Time }

// repeating ensures that each point has the same commands at the gates as in earlier runs. It belongs to one run.
type repeating struct {
	gates     *gates.Gates
	instances *instance.Instances
	buyers    *client.Buyers
	settling  *rest.Settling
	memory    *memory
	alone     bool // the run has one buyer alone, so its points are not points of the search

	point  point // current point
	before int   // Buyers.Handed at the last point
}

// leaves moves the point on, by the chosen token.
func (r *repeating) leaves(token string) { r.point = r.point.after(token) }

// repeat is called at each point. It waits for commands, or holds them back, until the gates have the same commands as
// in earlier runs.
func (r *repeating) repeat(ctx context.Context) error {
	if r.instances.Shared() { // in a shared instance, it is unknown which buyer set a timer
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

// several reports whether some buyer has more than one of the held commands. The list is sorted by buyer.
func several(held []*gates.Op) bool {
	for i := 1; i < len(held); i++ {
		if held[i].Buyer == held[i-1].Buyer {
			return true
		}
	}
	return false
}

// mark sets Op.Timed for the commands that have come since the last point. A command is timed if its buyer has received
// nothing since, or if the parameter `timed` is true. Then mark returns the held commands.
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

// timers waits for the new timers of the program that moved last. Then the point includes every command that the
// program sends by itself.
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

// settles waits until something happens, at most until the given time. Then it waits until the program is idle again.
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

func (r *repeating) remember() {
	if r.alone || len(r.memory.points) >= mostPoints {
		return
	}
	held := r.gates.Table.Now().Held
	all := make([]heldCommand, 0, len(held))
	for _, o := range held {
		all = append(all, heldCommandOf(o))
	}
	r.memory.points[r.point] = all
}

// match waits until all known commands are at the gates, and marks the others as late. If a known command does not come
// in time, the program behaves differently now. Then match records the new commands.
func (r *repeating) match(ctx context.Context, known []heldCommand) error {
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

// compare reports whether a known command is missing among the held ones. If none is, it marks unknown commands as
// late.
func (r *repeating) compare(held []*gates.Op, known []heldCommand) (missing bool) {
	rest := slices.Clone(known)
	var late []*gates.Op
	for _, o := range held {
		at := slices.IndexFunc(rest, func(s heldCommand) bool { return s.what == heldCommandOf(o).what })
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
	if len(known) > 0 { // if no command is known, marking all as late would end the run
		for _, o := range late {
			o.Late = true
		}
	}
	r.gates.Table.Arrange()
	return false
}
