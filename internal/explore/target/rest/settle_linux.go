package rest

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/explore/target/backend"
	"github.com/oversell/oversell/internal/explore/target/instance"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Times for finding a standstill, in which nothing moves. None of them decides which step comes next.
const (
	// Look is the time between two checks of a running program, at first. Later it is an eighth of the time since the last
	// event, at most longLook. More frequent checks would take the processor from the program.
	Look, longLook = 20 * time.Microsecond, time.Millisecond
	// A sleep longer than instance.LongestSleep counts as idle. If shorter sleeps follow one another for mostSleep, the
	// run is void (discarded). mostSleep is less than schedule.HangTimeout. It is that long because, for example, V8
	// collects garbage up to three times, 8 s apart, after a program has become idle.
	mostSleep = 28 * time.Second
	// If no buyer can move, but a buyer is inside a program, the explorer waits for timers that fire within farTimer. It
	// waits at least BlindWait, for sleeps that it cannot see.
	farTimer, BlindWait = time.Minute, 2 * time.Second
	// Asking a server which statements wait slows it down. So a statement must be unanswered for this long before the
	// explorer asks.
	slowAnswer = 300 * time.Microsecond
)

// A Run is the part of a schedule's run that Settling uses.
type Run interface {
	// Guard returns an error if an ignored command disturbs the run.
	Guard(ctx context.Context) error
	// HandOver takes the commands that have come, and delivers one answer, if there is one. While Pulse.Seq equals
	// `ordered`, no other answer can arrive before those that are here. HandOver returns true if a program has received something.
	HandOver(ctx context.Context, ordered int64) (moved bool, _ error)
	// Ended records that a server has ended a connection, after the program closed it.
	Ended(c *wire.Conn)
	// If a buyer pauses now, and the schedule wants another buyer's move in this pause, Pause makes that move. The
	// parameter `sleeps` reports that a timer of the program runs.
	Pause(ctx context.Context, sleeps bool) (made bool, _ error)
}

// A Settling takes a run from one standstill, in which nothing moves, to the next.
type Settling struct {
	rest  *Rest
	waits Waits
	run   Run
}

// NewSettling returns the settling of one run.
func NewSettling(r *Rest, backends backend.Backends, run Run) *Settling {
	return &Settling{r, Waits{r.gates, backends}, run}
}

// Settle lets the programs and the servers continue until nothing moves by itself. It delivers one answer at a time,
// and waits for a standstill after each. So only one program runs at a time, even if one command unblocks another.
// Afterwards, gates.Commands.Held has the commands that can be released.
func (r *Settling) Settle(ctx context.Context) error {
	pulse := r.rest.gates.Pulse
	begun := time.Now()
	sleeping := time.Time{}
	idle := BriefTimers{Rest: r.rest}
	lastSeq, lastEvent := pulse.Seq(), begun
	ordered := int64(-1) // Pulse.Seq at a time when every released command was answered or waited in its server
	for wait := time.Duration(0); ; pulse.Wait(wait) {
		now := time.Now()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if patience := r.rest.instances.Patience(); pulse.Since(begun) > patience {
			return naming.Void(fmt.Sprintf("no standstill within %s", patience), "%s", r.where())
		}
		if seq := pulse.Seq(); seq != lastSeq {
			lastSeq, lastEvent = seq, now
		}
		if err := r.run.Guard(ctx); err != nil {
			return err
		}
		if pulse.Busy() || r.rest.gates.Notices.Missing() {
			wait = longLook
			continue
		}
		if !idle.isQuiet() {
			wait = between(now.Sub(lastEvent))
			continue
		}
		wait = 0 // no wait: the delivered answer makes the pulse busy
		moves, err := r.run.HandOver(ctx, ordered)
		if err == nil && !moves {
			wait = Look
			moves, err = r.waits.ending(ctx, r.run.Ended)
		}
		if err != nil {
			return err
		}
		if moves {
			continue
		}
		waiting, err := r.waits.all(ctx, now.Sub(lastEvent))
		if err != nil {
			return err
		}
		if !waiting || pulse.Seq() != lastSeq {
			wait = max(slowAnswer-now.Sub(lastEvent), between(now.Sub(lastEvent)))
			continue
		}
		if ordered != lastSeq && len(r.rest.gates.Table.Now().Answered) > 0 {
			ordered, wait = lastSeq, 0
			continue
		}
		sleeps := r.rest.SleepsWithin(instance.LongestSleep)
		made, err := r.run.Pause(ctx, sleeps)
		if err != nil {
			return err
		}
		if made {
			wait = 0
			continue
		}
		switch {
		case !sleeps:
			return r.broken()
		case sleeping.IsZero():
			sleeping = now
		case pulse.Since(sleeping) > mostSleep:
			return naming.Void(fmt.Sprintf("a buyer inside the program sleeps for longer than %s", instance.LongestSleep), "%s", r.where())
		}
		pulse.Wake()
		wait = Look * 10
	}
}

// between returns the time until the next check of something that has run for the given time.
func between(since time.Duration) time.Duration {
	return min(max(Look, since/8), longLook)
}

// broken returns an error if a connection broke, or if a gate has found that the program cannot be explored.
func (r *Settling) broken() error {
	broken, refused := r.rest.gates.Trouble.Broken()
	switch {
	case refused != nil:
		return refused
	case broken != nil:
		return naming.Void("a program, or a server, hung up on a command", "%s (%v)%s", broken.Op.Of(), broken.Err, r.rest.instances.Of(broken.Op.Buyer).Said())
	}
	return nil
}

func (r *Settling) where() string {
	now := r.rest.gates.Table.Now()
	if inside := r.rest.buyers.Inside(now); len(inside) > 0 {
		return naming.Buyers(inside) + " inside the program, " + now.Where()
	}
	return now.Where()
}

// Wakes returns at once if a command can be released. Otherwise, if a buyer is inside a program, it waits until no
// timer is left that could wake the program. So the explorer can tell a long sleep from a dead end.
func (r *Settling) Wakes(ctx context.Context) error {
	pulse := r.rest.gates.Pulse
	for begun := time.Now(); ; {
		now := r.rest.gates.Table.Now()
		if len(now.Held)+len(now.Uncommitted) > 0 || len(r.rest.buyers.Inside(now)) == 0 {
			return nil
		}
		for since, moves := time.Now(), pulse.Moves(); pulse.Moves() == moves; time.Sleep(time.Millisecond) {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case pulse.Since(begun) > 2*farTimer:
				return naming.Void(fmt.Sprintf("a buyer inside the program sleeps for longer than %s", farTimer), "%s", r.where())
			case pulse.Since(since) > BlindWait && r.rest.Asleep() && !r.rest.SleepsWithin(farTimer):
				return nil
			}
		}
		if err := r.Settle(ctx); err != nil {
			return err
		}
	}
}
