package session

import (
	"context"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/instance"
)

// A renewal says whether the programs need new connections after a discarded run.
type renewal byte

const (
	unneeded renewal = iota
	due              // all connections were closed; Recover must let the programs open new ones
	done             // the programs have opened new connections; no run has succeeded since
)

// A Recovery chooses a repair of the programs after a run, and does it before the next run. A real shop may need half a
// minute to start, so Recovery restarts programs only if something cheaper did not help.
type Recovery struct {
	p         Programs
	rehearsal *Rehearsal
	down      []*instance.Instance // instances that were ended after the previous run, which Recover restarts
	renewal   renewal
	diverged  bool // the previous run diverged (the same choices led to other commands), and the programs continued as they were
	restarted bool // the previous run diverged, and then the programs were restarted
	futile    bool // a run after such a restart diverged, too, so a restart does not help
}

// NewRecovery returns the recovery of programs that are up.
func NewRecovery(x *Rehearsal) *Recovery { return &Recovery{p: x.p, rehearsal: x} }

// after records the end of a run and chooses the repair. If `serves` is true, they can continue as they
// are, for example after one run that diverged. After a second one in a row, `serves` is false: the cause may be in the
// program's memory, which only a restart empties. If `cuts` is true, new connections may be enough: the run was
// discarded for another reason, or a restart did not help before.
func (c *Recovery) after(err error) (serves, cuts bool) {
	void, discarded := schedule.AsVoid(err)
	if err == nil {
		c.renewal, c.restarted = unneeded, false
	}
	c.futile = c.futile || void.Diverged && c.restarted
	c.diverged = void.Diverged && !c.diverged
	return c.diverged, discarded && (!void.Diverged || c.futile)
}

// Recover restarts the programs that the previous run has ended, or renews the connections that it has closed. A
// program that it restarts was ended before, so it has no open connection.
func (c *Recovery) Recover(ctx context.Context) error {
	if len(c.down) == 0 && c.renewal != due {
		return nil
	}
	if len(c.down) == 0 {
		c.renewal = done
		err := c.rehearsal.renew(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		c.down = c.p.Instances.All
	}
	if err := c.rehearsal.restart(ctx, c.down...); err != nil { // restart also ends programs that a failed recovery has started
		return err
	}
	c.down, c.renewal = nil, unneeded
	c.p.Gates.Close()
	return nil
}

// Anew makes the next Recover restart every program, unless it is attached.
func (c *Recovery) Anew() {
	if c.p.App.Attach == nil {
		c.down = c.p.Instances.All
	}
}

// RestartAll restarts every program, unless it is attached.
func (c *Recovery) RestartAll(ctx context.Context) error {
	c.down = nil
	if c.p.App.Attach != nil {
		return nil
	}
	return c.rehearsal.restart(ctx, c.p.Instances.All...)
}
