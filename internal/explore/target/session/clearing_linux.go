package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/instance"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/rest"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A Clearing begins and ends one run. Afterwards, the programs are idle, without a buyer, behind closed gates. It tells
// the Recovery which programs must be restarted before the next run.
type Clearing struct {
	Buyers *client.Buyers
	Rest   *rest.Rest
	// Dirty returns the connections on which the run has left locks or transactions.
	Dirty func(ctx context.Context) ([]*wire.Conn, error)

	p        Programs
	recovery *Recovery
}

// NewClearing returns the clearing of a run with these buyers.
func NewClearing(c *Recovery, b *client.Buyers, r *rest.Rest, dirty func(ctx context.Context) ([]*wire.Conn, error)) *Clearing {
	return &Clearing{b, r, dirty, c.p, c}
}

// Early returns an error if a command waits at a gate when a run begins. That command belongs to the previous run,
// which has its verdict already. So Early makes the new run void (to be discarded) instead.
func (r *Clearing) Early(ctx context.Context) error {
	late, own := r.p.Gates.Table.Now().All(), r.p.Gates.OwnTraffic
	if len(late) == 0 {
		r.p.Gates.Close()
		return nil
	}
	own.Late(late)
	if err := r.drain(ctx); err != nil {
		return err
	}
	var texts []string
	for _, o := range late {
		texts = append(texts, o.Of())
	}
	return naming.Void("the program sends by itself when no buyer is there", "%s%s", strings.Join(texts, ", "), own.Advice(own.Pollers()))
}

// End ends a run that returned err. With `stuck`, the programs may be unable to finish their work.
func (r *Clearing) End(ctx context.Context, err error, stuck bool) error {
	serves, cuts := r.recovery.after(err)
	stuck = stuck && !serves && !(cuts && r.cut(ctx))
	void, _ := schedule.AsVoid(err)
	r.recovery.restarted = stuck && void.Diverged
	return r.Finish(ctx, stuck)
}

// Finish ends the run. It opens the gates, so the programs can finish their work. If a program is stuck, was killed, or
// has left a lock behind, Finish ends it. Recover restarts it if another run follows. After ctx has ended, Finish no
// longer waits for the programs.
func (r *Clearing) Finish(ctx context.Context, stuck bool) error {
	attached := r.p.App.Attach != nil
	if !stuck || attached { // an attached program cannot be restarted
		r.Buyers.Current = 0
		waits := ctx
		if attached {
			waits = context.WithoutCancel(ctx)
		}
		stuck = r.drain(waits) != nil
	}
	ctx = context.WithoutCancel(ctx)
	if stuck {
		r.Buyers.HangUp(r.Buyers.All...)
	}
	dirty, err := r.Dirty(ctx)
	if err != nil {
		return err
	}
	stuck = stuck || r.recovery.renewal == due && len(dirty) > 0
	if attached && len(dirty) > 0 && !stuck {
		return r.recovery.rehearsal.reconnect(ctx, dirty)
	}
	for _, i := range r.p.Instances.All {
		if !i.Up() || stuck || r.recovery.rehearsal.cold || slices.ContainsFunc(dirty, i.Serves) {
			if err := r.p.Instances.End(ctx, i); err != nil {
				return err
			}
			r.recovery.down = append(r.recovery.down, i)
		}
	}
	r.p.Gates.Close()
	return nil
}

// drain opens the gates, waits until the buyers are answered and the programs are idle, and closes the gates.
func (r *Clearing) drain(ctx context.Context) error {
	if r.done() {
		return nil
	}
	if err := r.p.Backends.OpenGates(ctx, r.p.Gates); err != nil {
		return err
	}
	if err := r.Served(ctx); err != nil {
		return err
	}
	idle := rest.BriefTimers{Rest: r.Rest}
	if rests, err := r.p.Await(ctx, rest.Look, idle.IsRestful); err != nil || !rests {
		return errors.New("the program does not become idle")
	}
	r.p.Gates.Close()
	return nil
}

// done reports whether the run ended in a standstill, with no command at the gates. Then drain has nothing to wait for.
func (r *Clearing) done() bool {
	table := r.p.Gates.Table
	return len(r.Buyers.Waiting()) == 0 && table.IsShut() && r.p.Gates.Pulse.Still() && len(table.Now().All()) == 0
}

// ErrJam reports that a buyer has no answer and nothing moves, because the buyers block each other.
var ErrJam = errors.New("the buyers block each other inside the program")

// Served waits, with the gates open, until all buyers that have sent a request are answered. It returns ErrJam if they
// block each other, and also if a command waits in a server for the lock of an idle connection.
func (r *Clearing) Served(ctx context.Context) error {
	pulse := r.p.Gates.Pulse
	begun, seq := time.Now(), pulse.Moves()
	for moved := begun; ; pulse.Wait(time.Millisecond) {
		if now := pulse.Moves(); now != seq {
			moved, seq = time.Now(), now
		}
		if pulse.Since(moved) > rest.BlindWait && r.Rest.Asleep() {
			if dirty, err := r.p.Holdings.Dirty(ctx); err != nil || len(dirty) > 0 {
				return errors.Join(ErrJam, err)
			}
			moved = time.Now()
		}
		switch {
		case len(r.Buyers.Waiting()) == 0:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case pulse.Since(begun) > r.p.Instances.Patience():
			return errors.New("a buyer is not answered")
		case r.Rest.IsRestful() && !r.Rest.SleepsWithin(instance.LongestSleep) && len(r.Buyers.Waiting()) > 0:
			return ErrJam
		}
	}
}

// unstickTime limits how long a discarded run waits for its buyers: first with open gates, then with its connections
// cut.
const unstickTime = 4 * time.Second

// cut ends a discarded run, but not its programs. It lets the buyers continue, and then closes all connections, which
// ends their transactions and locks. It returns false if the programs must be restarted: one was killed, a buyer is not
// answered, or the previous run was discarded, too.
func (r *Clearing) cut(ctx context.Context) bool {
	down := func(i *instance.Instance) bool { return !i.Up() || i.Attached() }
	if r.recovery.renewal == done || r.recovery.rehearsal.cold || slices.ContainsFunc(r.p.Instances.All, down) {
		return false
	}
	r.Buyers.Current = 0
	if r.p.Backends.OpenGates(ctx, r.p.Gates) != nil {
		return false
	}
	answered := func() bool {
		deadline := time.Now().Add(unstickTime)
		for len(r.Buyers.Waiting()) > 0 && time.Now().Before(deadline) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		return len(r.Buyers.Waiting()) == 0
	}
	answered()
	conns := r.p.Gates.Connections.InOrder()
	for _, c := range conns {
		c.Cut()
	}
	if r.p.Backends.End(ctx, conns) != nil || !answered() {
		return false
	}
	r.recovery.renewal = due
	return true
}
