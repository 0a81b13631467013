package target

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/rows"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/retry"
)

// A Runner implements schedule.Runner for a program. It serves one goroutine.
type Runner struct {
	app        *app.App
	servers    *app.Servers
	wanted     []schedule.Event
	gateTable  *gateTable
	backends   map[string]backend
	instances  *instances
	rehearsal  *rehearsal
	shared     bool
	overlap    bool // Spec.Overlap
	tries      int  // Spec.Tries
	coarse     bool // see names
	short      bool // a server has generated a short number
	pushed     bool // a server has pushed a message, so a buyer listens
	steps      int  // maximum number of steps of a schedule
	parallel   bool // a buyer has had several commands at the gates
	memory     memory
	solo       int // maximum number of commands that a buyer alone has at the servers at once
	patience   time.Duration
	holdings   holdings
	down       []*instance // ended after the previous run; recover restarts them
	recovery   recovery
	probe      probe
	varying    naming.Varying // see names
	watched    []string       // the columns of the user's watch query
	habits     habits         // for buyers that share one instance
	guard      ignoreGuard    // see app.Ignore
	catalog    *rows.Catalog  // nil: the search uses no footprints
	ownTraffic ownTraffic
	routine    retry.Routine   // see polling
	ctx        context.Context // the context of the current schedule
}

// New starts the instances of the program and waits until all are ready. Check must follow before the
// first Run, and Close at the end. The error is one line that says what to do.
func New(ctx context.Context, s Spec) (_ *Runner, err error) {
	gateTable, err := newFloor(s.App.Ignore, s.Servers.Listener())
	if err != nil {
		return nil, err
	}
	x := &Runner{
		app: s.App, servers: s.Servers, wanted: s.Events, gateTable: gateTable, memory: memory{}, backends: map[string]backend{},
		shared: s.App.Shared != "" || s.App.Attach != nil, overlap: s.Overlap, tries: cmp.Or(s.Tries, DefaultTries), steps: retry.MaxSteps, patience: schedule.HangTimeout, routine: retry.Routine{}, ctx: ctx,
	}
	if x.shared && slices.Contains(s.Events, schedule.Crash) {
		return nil, errors.New("--events crash: all buyers share one instance, so one of them cannot crash alone; give `run:`, which starts one for each")
	}
	for _, p := range protocols() {
		if s.Servers.Addresses()[p.Name] != "" {
			x.backends[p.Name] = p.backend(s.Servers)
		}
	}
	x.varying.Asked = s.App.Random
	x.instances = &instances{app: s.App, servers: s.Servers, gateTable: x.gateTable, backends: x.backends, shared: x.shared}
	x.holdings = holdings{gateTable: x.gateTable, backends: x.backends}
	x.probe = probe{x.instances, x.patience}
	x.rehearsal = &rehearsal{Runner: x, calm: map[string]bool{}}
	x.guard, x.ownTraffic = ignoreGuard{x: x}, ownTraffic{x: x}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	if err := x.instances.launch(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// Stated implements schedule.Runner. A program's state is invisible, so it returns false.
func (x *Runner) Stated() bool { return false }

// Run implements schedule.Runner. A problem in the program, or between it and its servers, is a
// schedule.Void.
func (x *Runner) Run(ctx context.Context, choose schedule.Chooser, observe bool) (e schedule.Ended, err error) {
	x.ctx = ctx
	if err := x.rehearsal.recover(ctx); err != nil {
		return e, err
	}
	r := x.newRun(observe)
	if err := r.clearing.early(ctx); err != nil {
		return e, err
	}
	if err := x.reset(ctx); err != nil {
		return e, err
	}
	x.gateTable.forget()
	if err := r.clearing.early(ctx); err != nil {
		return e, err
	}
	if err := x.guard.stretch(ctx); err != nil {
		return e, err
	}
	if r.expired, err = x.expired(ctx); err != nil {
		return e, err
	}
	if err := r.rows.Begin(ctx, x.servers.SQL("postgres")); err != nil {
		return e, err
	}
	return conduct.New(r, events{r}.all(), x.wanted, conduct.Limits{Steps: x.steps, Endless: r.repeated.Endless, Pauses: x.shared}).Run(ctx, choose)
}

// expired returns how many keys of Redis the clock has removed so far.
func (x *Runner) expired(ctx context.Context) (int, error) {
	if x.backends["redis"] == nil {
		return 0, nil
	}
	return x.servers.Redis().Expired(ctx)
}

// Printed returns what the program's instances have printed since the last call, one instance after the
// other, at most tailSize bytes of each.
func (x *Runner) Printed() string {
	var all strings.Builder
	for _, i := range x.instances.all {
		if i.log != nil {
			all.WriteString(i.log.news())
		}
	}
	return all.String()
}

// Close ends the programs and their networks.
func (x *Runner) Close() (err error) {
	x.gateTable.open()
	for _, i := range x.instances.all {
		err = errors.Join(err, i.stop())
	}
	return errors.Join(err, x.gateTable.bell.close())
}
