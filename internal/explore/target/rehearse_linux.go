package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A rehearsal lets the buyers through with the gates open, so that each program does the extra work of
// a first request before the search. It knows whether buyers block each other.
type rehearsal struct {
	*Runner
	jams bool // all of its buyers at once may block each other forever, or leave a lock behind
	cold bool // a buyer alone leaves a lock behind, so every run has new programs that served no buyer
	// The command lines of programs whose first look at rest showed all their timed waits.
	calm map[string]bool
}

// errLeaves reports that a buyer of a rehearsal left a lock behind. It is no verdict, since a rehearsal
// is not explored.
var errLeaves = errors.New("a lock is left behind")

// warm rehearses the buyers of programs that are ready. If a lock is left behind, it restarts the
// programs and rehearses fewer buyers: the search will find that lock, too.
func (x *rehearsal) warm(ctx context.Context, programs ...*instance) error {
	if err := x.ownTraffic.staysQuiet(ctx, time.Now()); err != nil {
		return err
	}
	if err := x.holdings.remember(ctx); err != nil {
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
		case i.line == "":
			return x.gateTable.orRefused(fmt.Errorf("%s: a buyer is answered, and its idle connection still has a lock or an open transaction, so the rehearsal cannot continue", i.label()))
		default:
			x.cold = x.jams || !x.shared
			x.jams = true
			for _, i := range programs {
				if err := x.instances.end(ctx, i); err != nil {
					return err
				}
			}
			return x.restart(ctx, programs...)
		}
	}
	if err := x.idle(ctx, programs...); err != nil {
		return err
	}
	return x.holdings.remember(ctx)
}

// clean returns errLeaves if a connection is still dirty after blindWait.
func (x *rehearsal) clean(ctx context.Context) error {
	for deadline := time.Now().Add(blindWait); ; time.Sleep(5 * time.Millisecond) {
		dirty, err := x.holdings.dirty(ctx)
		switch {
		case err != nil || len(dirty) == 0:
			return err
		case time.Now().After(deadline):
			return errLeaves
		}
	}
}

// reconnect ends the connections of a program that cannot be restarted. The next request on each
// connection fails, so reconnect sends requests until the program's pool has replaced all of them.
func (x *rehearsal) reconnect(ctx context.Context, conns []*wire.Conn) error {
	if err := x.instances.cut(ctx, conns); err != nil {
		return err
	}
	if _, err := x.reopened(ctx); err != nil {
		return err
	}
	if err := x.idle(ctx, x.instances.all...); err != nil {
		return err
	}
	x.gateTable.close()
	return x.holdings.remember(ctx)
}

// rehearse lets the instance's buyers through twice, with the gates open and all at once. That fills
// the instance's pools and caches.
func (x *rehearsal) rehearse(ctx context.Context, i *instance) error {
	if x.shared {
		return x.rehearseShared(ctx, i)
	}
	for range 2 {
		if err := x.oneByOne(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// answered waits for the buyer's answer and then until its locks are released, see clean.
func (x *rehearsal) answered(ctx context.Context, i *instance, b *buyer) error {
	select {
	case <-b.answered:
		return x.clean(ctx)
	case <-time.After(x.patience):
		return x.gateTable.orRefused(fmt.Errorf("buyer %d alone gets no answer within %s from %s%s", b.id, x.patience, x.app.Buyers[b.id-1].URL, i.said()))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// rehearseShared lets the buyers of the shared instance through, first one after the other and then all
// at once, see arrivalsFirst. If they block each other inside the program, it restarts the program and
// sends them only one after the other. The search will find that block, too.
func (x *rehearsal) rehearseShared(ctx context.Context, i *instance) error {
	if i.line == "" { // its connections are older than the gates
		if _, err := x.reopened(ctx); err != nil {
			return err
		}
	}
	if err := x.oneByOne(ctx, i); err != nil {
		return err
	}
	if x.jams || i.line == "" {
		return nil // an attached program cannot be restarted
	}
	if err := x.idle(ctx, i); err != nil { // from now on it is known which timers belong to the idle program
		return err
	}
	if err := x.reset(ctx); err != nil {
		return err
	}
	r := x.newRun(false)
	x.gateTable.close()
	_, err := conduct.New(together{r}, nil, nil, conduct.Limits{Steps: x.steps}).Run(ctx, r.arrivalsFirst)
	if _, void := schedule.AsVoid(err); err != nil && !void {
		return err
	}
	x.gateTable.open() // a discarded run goes on without the gates
	err = r.clearing.served(ctx)
	if err == nil {
		return x.clean(ctx)
	}
	if !errors.Is(err, errJam) {
		return err
	}
	x.jams = true
	for _, b := range r.buyers {
		_ = b.socket.Close()
	}
	if err := x.instances.end(ctx, i); err != nil {
		return err
	}
	if err := i.start(); err != nil {
		return err
	}
	if err := i.ready(ctx); err != nil {
		return err
	}
	return x.oneByOne(ctx, i)
}

// A together is a conduct.Subject whose end is not judged: the buyers of a shared instance in a rehearsal.
type together struct{ *run }

// End implements conduct.Subject.
func (together) End(_ context.Context, _ *schedule.Ended, err error) error { return err }

// arrivalsFirst implements schedule.Chooser. All buyers arrive before the first is served, so each needs a
// connection of its own. If the speed of the machine decided that, the program's pool would differ from
// one start to the next, and with it what a schedule does.
func (r *run) arrivalsFirst(p *schedule.Point) (string, error) {
	if len(r.coming) > 0 {
		return strconv.Itoa(r.coming[0].id), nil
	}
	return p.FirstMove(), nil
}

func (x *rehearsal) oneByOne(ctx context.Context, i *instance) error {
	x.gateTable.open()
	for _, id := range i.buyers() {
		if err := x.reset(ctx); err != nil {
			return err
		}
		x.gateTable.forget()
		r := x.newRun(false)
		if err := r.send(ctx, r.buyer(id)); err != nil {
			return err
		}
		if err := x.answered(ctx, i, r.buyer(id)); err != nil {
			return err
		}
	}
	return nil
}

// idle waits until the programs are idle, and records their timed waits in that state.
func (x *rehearsal) idle(ctx context.Context, programs ...*instance) error {
	r := x.newRun(false).rest
	for deadline := time.Now().Add(x.patience); !r.restful(); x.gateTable.bell.wait(time.Millisecond) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(deadline) {
			i := programs[max(0, slices.IndexFunc(programs, func(i *instance) bool { return !i.program.Asleep() }))]
			return fmt.Errorf("%s: it does not become idle within %s after a request; a program that works by itself all the time cannot be explored%s%s", i.label(), x.patience, x.ownTraffic.sends(ctx), i.said())
		}
	}
	for _, i := range programs {
		if err := i.program.Refresh(); err != nil {
			return err
		}
	}
	x.ownTraffic.begin(&x.ownTraffic.seen)
	defer x.ownTraffic.end()
	x.baseline(programs)
	return nil
}

// baseline looks at the idle programs. If all timed waits of an earlier instance were there at the first
// look, a few looks suffice. If a later look shows another wait even so, the instance is looked at as
// often as the first. A wait that is missing counts as a sleep, so it only makes runs longer.
func (x *rehearsal) baseline(programs []*instance) {
	restless := map[*instance]bool{}
	for look := range idleLooks {
		enough := look >= calmLooks
		for _, i := range programs {
			restless[i] = i.program.Baseline() && look > 0 || restless[i]
			enough = enough && x.calm[i.line] && !restless[i]
		}
		if enough {
			return
		}
		time.Sleep(idlePause)
	}
	for _, i := range programs {
		x.calm[i.line] = !restless[i]
	}
}

// The number of looks at the idle program. A timer that fires twice a second shows in idleLooks.
const (
	idleLooks = 60
	calmLooks = 1
	idlePause = 10 * time.Millisecond
)

// restart restarts programs that have ended, and lets their buyers through.
func (x *rehearsal) restart(ctx context.Context, programs ...*instance) error {
	for _, i := range programs {
		if err := i.start(); err != nil {
			return err
		}
	}
	for _, i := range programs {
		if err := i.ready(ctx); err != nil {
			return err
		}
	}
	return x.warm(ctx, programs...)
}
