package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/instance"
	"github.com/oversell/oversell/internal/explore/target/rest"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/load/pulse"
)

// A Rehearsal lets the buyers through with the gates open, so that each program does the extra work of a first request
// before the search. It records what it has seen of the programs: whether buyers block each other or leave locks
// behind, and which timed waits an idle program has. These facts stay valid after a restart.
type Rehearsal struct {
	// Together lets all buyers of a shared instance through at once, see ErrJam. The caller sets it before the
	// first start.
	Together func(ctx context.Context) error
	// Watch is how long programs that stay busy are watched, so that the error names their commands.
	Watch time.Duration

	p    Programs
	jams bool // if all buyers run at once, they may block each other forever or leave a lock behind
	cold bool // a buyer that runs alone leaves a lock behind, so each run starts new programs
	// The command lines of programs that showed all their timed waits in the first check while idle.
	calm map[string]bool
}

// NewRehearsal returns a rehearsal of these programs.
func NewRehearsal(p Programs) *Rehearsal { return &Rehearsal{p: p, calm: map[string]bool{}} }

// Next returns a rehearsal of the same programs for other buyers.
func (x *Rehearsal) Next() *Rehearsal { return &Rehearsal{p: x.p, calm: x.calm} }

// errLeaves reports that a buyer of a rehearsal left a lock behind. It is no verdict, since a rehearsal
// is not explored.
var errLeaves = errors.New("a lock is left behind")

func (x *Rehearsal) restart(ctx context.Context, programs ...*instance.Instance) error {
	if err := x.p.Instances.Restart(ctx, programs...); err != nil {
		return err
	}
	return x.Warm(ctx, programs...)
}

// Warm rehearses the buyers of programs that are ready. If a lock is left behind, it restarts the
// programs and rehearses fewer buyers: the search will find that lock, too.
func (x *Rehearsal) Warm(ctx context.Context, programs ...*instance.Instance) error {
	if err := x.p.StaysQuiet(ctx, time.Now()); err != nil {
		return err
	}
	if err := x.p.Holdings.Remember(ctx); err != nil {
		return err
	}
	for _, i := range programs {
		if x.cold {
			break
		}
		switch err := x.rehearse(ctx, i); {
		case !errors.Is(err, errLeaves):
			if err != nil {
				return err
			}
		case i.Attached():
			return x.p.Gates.Trouble.OrRefused(fmt.Errorf("%s: a buyer is answered, and its idle connection still has a lock or an open transaction, so the rehearsal cannot continue", i.Label()))
		default:
			x.cold = x.jams || !x.p.Instances.Shared()
			x.jams = true
			return x.restart(ctx, programs...)
		}
	}
	if err := x.idle(ctx, programs...); err != nil {
		return err
	}
	return x.p.Holdings.Remember(ctx)
}

// clean returns errLeaves if a connection is still dirty after rest.BlindWait.
func (x *Rehearsal) clean(ctx context.Context) error {
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		dirty, err := x.p.Holdings.Dirty(ctx)
		switch {
		case err != nil || len(dirty) == 0:
			return err
		case x.p.Gates.Pulse.Since(begun) > rest.BlindWait:
			return errLeaves
		}
	}
}

// rehearse lets the instance's buyers through twice, with the gates open. That fills the instance's pools and caches.
func (x *Rehearsal) rehearse(ctx context.Context, i *instance.Instance) error {
	if x.p.Instances.Shared() {
		return x.rehearseShared(ctx, i)
	}
	for range 2 {
		if err := x.oneByOne(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// rehearseShared lets the buyers of the shared instance through, first one after the other and then all
// at once. If they block each other inside the program, it restarts the program and sends them only one
// after the other. The search will find that block, too.
func (x *Rehearsal) rehearseShared(ctx context.Context, i *instance.Instance) error {
	if i.Attached() { // its connections were opened before the gates existed, so the pool must replace them
		if _, err := x.reopened(ctx); err != nil {
			return err
		}
	}
	if err := x.oneByOne(ctx, i); err != nil {
		return err
	}
	if x.jams || i.Attached() {
		return nil // an attached program cannot be restarted
	}
	if err := x.idle(ctx, i); err != nil { // from now on it is known which timers belong to the idle program
		return err
	}
	if err := x.p.Reset(ctx); err != nil {
		return err
	}
	err := x.Together(ctx)
	if err == nil {
		return x.clean(ctx)
	}
	if !errors.Is(err, ErrJam) {
		return err
	}
	x.jams = true
	if err := x.p.Instances.Restart(ctx, i); err != nil {
		return err
	}
	return x.oneByOne(ctx, i)
}

// oneByOne lets the instance's buyers through, one after the other, each after a reset.
func (x *Rehearsal) oneByOne(ctx context.Context, i *instance.Instance) error {
	x.p.Gates.Open()
	for _, id := range i.Buyers() {
		if err := x.p.Reset(ctx); err != nil {
			return err
		}
		x.p.Gates.Connections.Forget()
		all := client.New(x.p.Gates, x.p.App.Buyers)
		b := all.Of(id)
		if err := all.Send(ctx, b, x.p.Request(id), i); err != nil {
			return err
		}
		limit, cancel := pulse.WithTimeout(ctx, x.p.App.IdleWithin)
		defer cancel()
		select {
		case <-b.Answered:
		case <-limit.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return x.p.Gates.Trouble.OrRefused(fmt.Errorf("buyer %d alone gets no answer within %s from %s; `idle-within:` gives it more time%s", id, x.p.App.IdleWithin, b.Request.URL, i.Said()))
		}
		cancel()
		if err := x.clean(ctx); err != nil {
			return err
		}
	}
	return nil
}

// idle waits until the programs are idle, and records their timed waits in that state.
func (x *Rehearsal) idle(ctx context.Context, programs ...*instance.Instance) error {
	switch rests, err := x.p.Await(ctx, time.Millisecond, x.p.Rest().IsRestful); {
	case err != nil:
		return err
	case !rests:
		i := programs[max(0, slices.IndexFunc(programs, func(i *instance.Instance) bool { return !i.Program.Asleep() }))]
		return fmt.Errorf("%s: it does not become idle within %s after a request; `idle-within:` gives it more time; a program that works by itself all the time cannot be explored%s%s", i.Label(), x.p.App.IdleWithin, x.p.Gates.OwnTraffic.Sends(ctx, x.Watch), i.Said())
	}
	for _, i := range programs {
		if err := i.Program.Refresh(); err != nil {
			return err
		}
	}
	defer x.p.Gates.OwnTraffic.Record()()
	x.baseline(programs)
	return nil
}

// baseline records the timed waits of idle programs, in several checks. If an earlier instance showed all its waits in
// the first check, a few checks suffice, unless a later check shows a new wait. A wait that is not recorded counts as a
// sleep, so it only makes runs longer.
func (x *Rehearsal) baseline(programs []*instance.Instance) {
	restless := map[*instance.Instance]bool{}
	for look := range idleLooks {
		enough := look >= calmLooks
		for _, i := range programs {
			restless[i] = i.Program.Baseline() && look > 0 || restless[i]
			enough = enough && x.calm[i.Line] && !restless[i]
		}
		if enough {
			return
		}
		time.Sleep(idlePause)
	}
	for _, i := range programs {
		x.calm[i.Line] = !restless[i]
	}
}

// Numbers of checks of an idle program. A timer that fires twice a second shows in one of idleLooks checks.
const (
	idleLooks = 60
	calmLooks = 1
	idlePause = 10 * time.Millisecond
)

// reconnect ends the connections of a program that cannot be restarted. The next request on each
// connection fails, so reconnect sends requests until the program's pool has replaced all of them.
func (x *Rehearsal) reconnect(ctx context.Context, conns []*wire.Conn) error {
	if err := x.p.Backends.Cut(ctx, x.p.Gates, conns); err != nil {
		return err
	}
	if _, err := x.reopened(ctx); err != nil {
		return err
	}
	return x.rests(ctx)
}

// renew lets the programs open new connections after Clearing.cut, and rehearses the buyers as after a start.
func (x *Rehearsal) renew(ctx context.Context) error {
	served, err := x.reopened(ctx)
	if err != nil {
		return err
	}
	if !served {
		return errors.New("the program does not open new connections")
	}
	for _, i := range x.p.Instances.All {
		if err := x.rehearse(ctx, i); err != nil {
			return err
		}
	}
	return x.rests(ctx)
}

// rests waits until all programs are idle, shuts the gates, and remembers what the programs hold then.
func (x *Rehearsal) rests(ctx context.Context) error {
	if err := x.idle(ctx, x.p.Instances.All...); err != nil {
		return err
	}
	x.p.Gates.Close()
	return x.p.Holdings.Remember(ctx)
}

// staleConnections is the maximum number of rounds of requests in the function reopened.
const staleConnections = 20

// reopened sends requests until no buyer's request fails, and reports whether that has happened. A pool
// notices a broken connection at its next request, which fails.
func (x *Rehearsal) reopened(ctx context.Context) (bool, error) {
	for range staleConnections {
		failed := false
		for n := range x.p.App.Buyers {
			if err := x.p.Reset(ctx); err != nil {
				return false, err
			}
			x.p.Gates.Open()
			answer, err := x.p.Probe().Ask(ctx, x.p.Instances.Of(n+1), x.p.Request(n+1))
			if err != nil {
				return false, err
			}
			failed = failed || answer.Err != nil || answer.Reply.Failed()
		}
		if !failed {
			return true, nil
		}
	}
	return false, context.Cause(ctx)
}
