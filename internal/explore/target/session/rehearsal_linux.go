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

// A Rehearsal serves the buyers before the search, while the gates hold no commands. Then each program has done the
// extra work of a first request. It also records facts that stay valid after a restart: whether buyers block each other
// or leave locks behind, and which timed waits an idle program has.
type Rehearsal struct {
	// Together serves all buyers of a shared instance at once. If they block each other, it returns ErrJam. The caller
	// sets it before the first start.
	Together func(ctx context.Context) error
	// Watch is how long to watch programs that stay busy, so that the error can name their commands.
	Watch time.Duration

	p    Programs
	jams bool // buyers that are served at once may block each other forever or leave a lock behind
	cold bool // a buyer alone leaves a lock behind, so each run needs newly started programs
	// calm has the command lines of programs that showed all their timed waits in the first check.
	calm map[string]bool
}

// NewRehearsal returns a rehearsal of these programs.
func NewRehearsal(p Programs) *Rehearsal { return &Rehearsal{p: p, calm: map[string]bool{}} }

// Next returns a rehearsal of the same programs with other buyers.
func (x *Rehearsal) Next() *Rehearsal { return &Rehearsal{p: x.p, calm: x.calm} }

// errLeaves reports that a buyer left a lock behind in a rehearsal. It is no verdict, because only the search judges.
var errLeaves = errors.New("a lock is left behind")

func (x *Rehearsal) restart(ctx context.Context, programs ...*instance.Instance) error {
	if err := x.p.Instances.Restart(ctx, programs...); err != nil {
		return err
	}
	return x.Warm(ctx, programs...)
}

// Warm rehearses the buyers of programs that are ready. If a buyer leaves a lock behind, Warm restarts the programs and
// rehearses fewer buyers. The search will find that lock, too.
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

// clean waits up to rest.BlindWait. If a lock or transaction is still left on a connection then, it returns errLeaves.
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

// rehearse serves the instance's buyers twice, with open gates. That fills the instance's pools and caches.
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

// rehearseShared serves the buyers of the shared instance, first one after the other and then all at once. If they
// block each other inside the program, it restarts the program, and then serves them only one after the other. The
// search will find that block, too.
func (x *Rehearsal) rehearseShared(ctx context.Context, i *instance.Instance) error {
	if i.Attached() { // its connections are older than the gates, so the pool must replace them
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
	if err := x.idle(ctx, i); err != nil { // the timers of the idle program are known from now on
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

// oneByOne serves the instance's buyers one after the other, with a reset before each.
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

// idle waits until the programs are idle, and then records their timed waits.
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
// the first check, a few checks are enough, unless a later one shows a new wait. A wait that baseline misses counts as
// a sleep of a busy program, which only makes runs longer.
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

// Numbers of checks of an idle program. Among idleLooks checks, one sees a timer that fires twice a second.
const (
	idleLooks = 60
	calmLooks = 1
	idlePause = 10 * time.Millisecond
)

// reconnect closes the connections of a program that cannot be restarted. The program notices it when the next request
// on a connection fails. So reconnect sends requests until the program's pool has replaced all of them.
func (x *Rehearsal) reconnect(ctx context.Context, conns []*wire.Conn) error {
	if err := x.p.Backends.Cut(ctx, x.p.Gates, conns); err != nil {
		return err
	}
	if _, err := x.reopened(ctx); err != nil {
		return err
	}
	return x.rests(ctx)
}

// renew lets the programs open new connections after Clearing.cut. Then it rehearses the buyers, as after a start.
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

// rests waits until all programs are idle, closes the gates, and records the locks that the programs hold themselves.
func (x *Rehearsal) rests(ctx context.Context) error {
	if err := x.idle(ctx, x.p.Instances.All...); err != nil {
		return err
	}
	x.p.Gates.Close()
	return x.p.Holdings.Remember(ctx)
}

// staleConnections is the maximum number of rounds in which the function reopened sends requests.
const staleConnections = 20

// reopened sends requests until no buyer's request fails, and reports whether it succeeded. A pool notices a broken
// connection only when a request on it fails.
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
