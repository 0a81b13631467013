package target

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
	"github.com/oversell/oversell/internal/explore/wire"
)

// The type instances has the instances of the program: one per buyer, or one for all. It starts and ends them.
type instances struct {
	app       *app.App
	servers   *app.Servers
	gateTable *gateTable
	backends  map[string]backend
	shared    bool
	all       []*instance
}

// lines returns the command line of each instance.
func (x *instances) lines() []string {
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

// launch starts every instance in its network, together with its gates.
func (x *instances) launch(ctx context.Context) error {
	for n, line := range x.lines() {
		i := &instance{app: x.app, line: line, buyer: n + 1}
		if x.shared {
			i.buyer = 0
		}
		x.all = append(x.all, i)
		if x.app.Attach == nil {
			space, err := process.NewSpace()
			if err != nil {
				return err
			}
			i.space = space
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
		if err := i.start(); err != nil {
			return err
		}
	}
	for _, i := range x.all {
		if err := i.ready(ctx); err != nil {
			return x.gateTable.orRefused(err)
		}
	}
	return nil
}

// migrationTimeout bounds the command that creates the tables.
const migrationTimeout = 10 * time.Minute

// migrate runs the command that creates the tables, in the network of an instance that has not started.
func (x *instances) migrate(ctx context.Context, i *instance) error {
	log := &tail{}
	p, err := process.Start(i.space, process.Command{Line: x.app.Migrate, Dir: x.app.Dir, Env: i.env(), Log: log})
	if err != nil {
		return fmt.Errorf("migrate: %s: %w", x.app.Migrate, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, migrationTimeout, fmt.Errorf("migrate: %s: it has not ended within %s", x.app.Migrate, migrationTimeout))
	defer cancel()
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Stop()
		return context.Cause(ctx)
	}
	p.Stop() // its output is complete then
	if how := p.Err(); how.Error() != "exit status 0" {
		return fmt.Errorf("migrate: %s: it failed (%w)%s", x.app.Migrate, how, log.last())
	}
	return x.servers.Renumber(ctx)
}

// listen opens the gates at the addresses of the program's servers.
func (x *instances) listen(i *instance) error {
	for _, p := range protocols() {
		if x.backends[p.Name] == nil {
			continue
		}
		at := x.app.Gate(p.Name)
		l, err := i.space.Listen(at)
		if err != nil {
			return x.noGate(p.Name, at, err)
		}
		listener, err := wire.Listen(x.gateTable, p.Protocol, i.buyer, l, x.servers.Addresses()[p.Name], nil)
		if err != nil {
			return err
		}
		i.listeners = append(i.listeners, listener)
	}
	return nil
}

// noGate explains why a gate cannot listen at the address of the program's server.
func (x *instances) noGate(name, at string, err error) error {
	what := ""
	if errors.Is(err, syscall.EADDRINUSE) && x.app.Attach != nil {
		what = "; something listens there: give another port under `gates:`, and have the program look there for its server"
	}
	return fmt.Errorf("the gate for %s at %s: %w%s", name, at, err, what)
}

// of returns the instance that serves a buyer.
func (x *instances) of(buyer int) *instance {
	if len(x.all) == 1 {
		return x.all[0]
	}
	return x.all[buyer-1]
}

var errStuck = errors.New("the attached program is stuck, and only its owner can restart it; a program under `shared:` is restarted when necessary")

// end kills a program and waits until the servers have rolled back its transactions.
func (x *instances) end(ctx context.Context, i *instance) error {
	if i.line == "" {
		return errStuck
	}
	if i.up() {
		i.kill()
	}
	x.gateTable.mu.Lock()
	conns := x.gateTable.conns.of(i.buyer)
	x.gateTable.mu.Unlock()
	return x.cut(ctx, conns)
}

// cut ends connections of a program, opens the gates, and waits until the servers have rolled back the
// transactions of these connections.
func (x *instances) cut(ctx context.Context, conns []*wire.Conn) error {
	for _, c := range conns {
		c.Cut()
	}
	x.gateTable.open()
	for _, c := range conns {
		if err := x.backends[c.Protocol].end(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// bury ends the remaining processes of a program whose first process has ended, and reports that it
// ended.
func (x *instances) bury(ctx context.Context) (why string, err error) {
	for _, i := range x.all {
		select {
		case <-i.program.Done():
		default:
			continue
		}
		why = fmt.Sprintf("the program has ended (%v)%s", i.program.Err(), i.log.last())
		if i.line == "" { // nothing is left to end
			continue
		}
		if err := x.end(ctx, i); err != nil {
			return why, err
		}
	}
	return why, nil
}

// unaccepted reports whether a connection to a gate or a program has not been accepted yet.
func (x *instances) unaccepted() bool {
	for _, i := range x.all {
		for _, l := range i.listeners {
			if l.Waiting() > 0 {
				return true
			}
		}
	}
	return false
}

// sleeps reports whether a program will continue by itself after some time.
func (x *instances) sleeps() bool {
	return slices.ContainsFunc(x.all, func(i *instance) bool { return i.up() && i.program.Sleeping(longestSleep) })
}
