// Package session keeps the programs of an exploration ready for the next run. It owns the parts that outlive a run:
//
//	Programs   the instances, their gates and their servers; Reset restores the state before each run
//	Rehearsal  serves the buyers after a start, so that no run has the extra work of a first request
//	Recovery   repairs the programs after a run, if necessary: new connections, or a restart
//	Clearing   ends one run, and leaves the programs idle behind closed gates
package session

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target/backend"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/instance"
	"github.com/oversell/oversell/internal/explore/target/rest"
	"github.com/oversell/oversell/internal/load/pulse"
)

// Programs are the instances, gates and servers of an exploration, and live as long as it does. The value can be
// copied.
type Programs struct {
	App       *app.App
	Servers   *app.Servers
	Gates     *gates.Gates
	Backends  backend.Backends
	Code      backend.Catalogs
	Instances *instance.Instances
	Holdings  *backend.Holdings

	handed map[int]map[string]string // by buyer and name: values from the answers to the requests of `before` in oversell.yaml
}

// Open returns programs that are not started, behind open gates. The caller must call Gates.End.
func Open(a *app.App, servers *app.Servers) (p Programs, err error) {
	p = Programs{App: a, Servers: servers, Code: backend.NewCatalogs(), handed: map[int]map[string]string{}}
	p.Backends = backend.Open(servers, p.Code)
	if p.Gates, err = gates.New(a, servers.Listener()); err != nil {
		return p, err
	}
	p.Instances = instance.New(a, servers, p.Gates, p.Backends, p.Code)
	p.Holdings = backend.NewHoldings(p.Gates, p.Backends)
	return p, nil
}

// Probe returns a probe of the programs.
func (p Programs) Probe() instance.Probe { return instance.Probe{Instances: p.Instances} }

// Rest returns a rest.Rest that checks the programs while no schedule runs.
func (p Programs) Rest() *rest.Rest {
	return rest.New(p.Gates, p.Instances, client.New(p.Gates, nil))
}

// Await waits until the function `calm` returns true. It calls calm again when something happens, and at least once in
// the time `every`. If calm does not return true within `idle-within` of oversell.yaml, Await returns false.
func (p Programs) Await(ctx context.Context, every time.Duration, calm func() bool) (bool, error) {
	limit, cancel := pulse.WithTimeout(ctx, p.App.IdleWithin)
	defer cancel()
	for ; !calm(); p.Gates.Pulse.Wait(every) {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if limit.Err() != nil {
			return false, nil
		}
	}
	return true, nil
}

// StaysQuiet waits until the programs have sent nothing for the time `quiet` in oversell.yaml, see gates.OwnTraffic.
func (p Programs) StaysQuiet(ctx context.Context, since time.Time) error {
	return p.Gates.OwnTraffic.StaysQuiet(ctx, since, p.Instances.Patience())
}

// Expired returns how many keys of Redis the clock has removed so far.
func (p Programs) Expired(ctx context.Context) (int, error) {
	if p.Backends["redis"] == nil {
		return 0, nil
	}
	return p.Servers.Redis().Expired(ctx)
}
