package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/process"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/backend"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/load/pulse"
)

// Instances starts and ends the instances of the program: one for each buyer, or one for all.
type Instances struct {
	All []*Instance

	app      *app.App
	servers  *app.Servers
	gates    *gates.Gates
	backends backend.Backends
	code     backend.Catalogs
}

// New returns instances that are not started.
func New(a *app.App, servers *app.Servers, g *gates.Gates, backends backend.Backends, code backend.Catalogs) *Instances {
	return &Instances{app: a, servers: servers, gates: g, backends: backends, code: code}
}

// Patience returns how long a program may take to answer or to become idle: `idle-within` in oversell.yaml, but at
// least schedule.HangTimeout.
func (x *Instances) Patience() time.Duration { return max(x.app.IdleWithin, schedule.HangTimeout) }

// Shared reports whether one instance serves all buyers.
func (x *Instances) Shared() bool { return x.app.Shared != "" || x.app.Attach != nil }

func (x *Instances) lines() []string {
	switch {
	case x.app.Attach != nil:
		return []string{""}
	case x.app.Shared != "":
		return []string{x.app.Shared}
	case len(x.app.Run) == 1:
		return slices.Repeat(x.app.Run, len(x.app.Buyers))
	}
	return x.app.Run
}

// Launch starts every instance in its network, together with its gates.
func (x *Instances) Launch(ctx context.Context) error {
	for n, line := range x.lines() {
		i := &Instance{app: x.app, Line: line, buyer: n + 1}
		if x.Shared() {
			i.buyer = 0
		}
		x.All = append(x.All, i)
		if x.app.Attach == nil {
			space, err := process.NewNetwork()
			if err != nil {
				return err
			}
			i.Network = space
		}
		if err := x.listen(i); err != nil {
			return err
		}
		if x.app.OwnHome {
			home, err := os.MkdirTemp("", "oversell-home-")
			if err != nil {
				return fmt.Errorf("home: %w", err)
			}
			i.home = home
		}
		if n == 0 && x.app.Migrate != "" {
			if err := x.migrate(ctx, i); err != nil {
				return err
			}
		}
		if err := i.Start(); err != nil {
			return err
		}
	}
	for _, i := range x.All {
		if err := i.Ready(ctx); err != nil {
			return x.gates.Trouble.OrRefused(err)
		}
	}
	return nil
}

const migrationTimeout = 10 * time.Minute

// migrate runs the command of oversell.yaml that creates the tables, in the network of an instance that is not started
// yet.
func (x *Instances) migrate(ctx context.Context, i *Instance) error {
	log := &tail{}
	p, err := process.Start(i.Network, process.Command{Line: x.app.Migrate, Dir: x.app.Dir, Env: i.env(), Log: log})
	if err != nil {
		return fmt.Errorf("migrate: %s: %w", x.app.Migrate, err)
	}
	limit, cancel := pulse.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	select {
	case <-p.Done():
	case <-limit.Done():
		p.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("migrate: %s: it has not ended within %s", x.app.Migrate, migrationTimeout)
	}
	p.Stop() // after Stop, the output is complete
	if how := p.Err(); how.Error() != "exit status 0" {
		return fmt.Errorf("migrate: %s: it failed (%w)%s", x.app.Migrate, how, log.last())
	}
	return x.servers.Renumber(ctx)
}

// listen opens the gates of an instance, at the addresses of the program's servers.
func (x *Instances) listen(i *Instance) error {
	for _, p := range backend.Protocols(x.code) {
		if x.backends[p.Name] == nil {
			continue
		}
		at := x.app.Gate(p.Name)
		l, err := i.Network.Listen(at)
		if err != nil {
			return x.noGate(p.Name, at, err)
		}
		listener, err := wire.Listen(x.gates, p.Protocol, i.buyer, l, x.servers.Addresses()[p.Name], nil)
		if err != nil {
			return err
		}
		i.listeners = append(i.listeners, listener)
	}
	return nil
}

func (x *Instances) noGate(name, at string, err error) error {
	what := ""
	if errors.Is(err, syscall.EADDRINUSE) && x.app.Attach != nil {
		what = "; something listens there: give another port under `gates:`, and have the program look there for its server"
	}
	return fmt.Errorf("the gate for %s at %s: %w%s", name, at, err, what)
}

// Of returns the instance that serves a buyer.
func (x *Instances) Of(buyer int) *Instance {
	if len(x.All) == 1 {
		return x.All[0]
	}
	return x.All[buyer-1]
}

// ErrStuck reports that an attached program would have to be restarted, which only its owner can do.
var ErrStuck = errors.New("the attached program is stuck, and only its owner can restart it; a program under `shared:` is restarted when necessary")

// End kills a program and waits until the servers have rolled back its transactions.
func (x *Instances) End(ctx context.Context, i *Instance) error {
	if i.Line == "" {
		return ErrStuck
	}
	if i.Up() {
		i.Kill()
	}
	return x.backends.Cut(ctx, x.gates, x.gates.Connections.Of(i.buyer))
}

// Restart ends the programs that are up, starts them all, and returns when they are ready.
func (x *Instances) Restart(ctx context.Context, programs ...*Instance) error {
	for _, i := range programs {
		if err := x.End(ctx, i); err != nil {
			return err
		}
	}
	for _, i := range programs {
		if err := i.Start(); err != nil {
			return err
		}
	}
	for _, i := range programs {
		if err := i.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Bury looks for a program whose first process has ended. It ends that program's other processes, and says that it
// ended.
func (x *Instances) Bury(ctx context.Context) (why string, err error) {
	for _, i := range x.All {
		select {
		case <-i.Program.Done():
		default:
			continue
		}
		why = fmt.Sprintf("the program has ended (%v)%s", i.Program.Err(), i.log.last())
		if i.Line == "" { // it was attached, so no process is left to end
			continue
		}
		if err := x.End(ctx, i); err != nil {
			return why, err
		}
	}
	return why, nil
}

// Unaccepted reports whether a gate or a program has not accepted a connection yet.
func (x *Instances) Unaccepted() bool {
	for _, i := range x.All {
		for _, l := range i.listeners {
			if l.Waiting() > 0 {
				return true
			}
		}
	}
	return false
}

// Sleeps reports whether a program sleeps, and will continue by itself within LongestSleep.
func (x *Instances) Sleeps() bool {
	return slices.ContainsFunc(x.All, func(i *Instance) bool { return i.Up() && i.Program.Sleeping(LongestSleep) })
}

// LongestSleep is the limit of a sleep. A program that sleeps for longer counts as idle.
const LongestSleep = 10 * time.Second
