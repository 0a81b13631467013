package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/process"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A Runner is schedule.Runner of a program. It is for one goroutine.
type Runner struct {
	app      *app.App
	servers  *app.Servers
	events   []event
	floor    *floor
	backends map[string]backend
	programs []*instance // one a buyer, or one for all
	shared   bool
	tries    int  // of Spec
	coarse   bool // see names
	short    bool // a server has made up a short number
	pushed   bool // a server has pushed something: somebody listens
	solo     int  // commands that a buyer alone has at the servers at once, at most
	patience time.Duration
	watched  []string        // the columns of the user's watch query
	habits   habits          // of the buyers who share one instance
	jams     bool            // all of its buyers at once may block each other for ever
	ctx      context.Context // of the schedule that runs
}

// New starts the program, as often as it is to run, lets each buyer through alone, and
// waits until all is idle. Close must follow. The error is one line that says what to do.
func New(ctx context.Context, s Spec) (_ *Runner, err error) {
	x := &Runner{
		app: s.App, servers: s.Servers, events: eventsNamed(s.Events), floor: newFloor(), backends: map[string]backend{},
		shared: s.App.Shared != "" || s.App.Attach != nil, tries: cmp.Or(s.Tries, DefaultTries), patience: schedule.HangTimeout, ctx: ctx,
	}
	for _, e := range x.events {
		if x.shared && e.name() == (crashEvent{}).name() {
			return nil, errors.New("--events crash: all buyers share one instance, so one of them cannot crash alone; give `run:`, which starts one for each")
		}
	}
	for _, p := range protocols() {
		if s.Servers.Addresses()[p.Name] != "" {
			x.backends[p.Name] = p.backend(s.Servers)
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	if err := x.launch(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// lines are what starts each instance.
func (x *Runner) lines() []string {
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

// launch starts every instance in its network, with the gates in it.
func (x *Runner) launch(ctx context.Context) error {
	for n, line := range x.lines() {
		i := &instance{line: line, buyer: n + 1}
		if x.shared {
			i.buyer = 0
		}
		x.programs = append(x.programs, i)
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
		if err := x.start(i); err != nil {
			return err
		}
	}
	for _, i := range x.programs {
		if err := x.ready(ctx, i); err != nil {
			return x.orRefused(err)
		}
	}
	return nil
}

// listen puts the gates where the program looks for its servers.
func (x *Runner) listen(i *instance) error {
	for _, p := range protocols() {
		if x.backends[p.Name] == nil {
			continue
		}
		at := x.app.Gate(p.Name)
		l, err := i.space.Listen(at)
		if err != nil {
			return x.noGate(p.Name, at, err)
		}
		listener, err := wire.Listen(x.floor, p.Protocol, i.buyer, l, x.servers.Addresses()[p.Name], nil)
		if err != nil {
			return err
		}
		i.listeners = append(i.listeners, listener)
	}
	return nil
}

// noGate is why a gate cannot stand where the program looks for its server.
func (x *Runner) noGate(name, at string, err error) error {
	what := ""
	if errors.Is(err, syscall.EADDRINUSE) && x.app.Attach != nil {
		what = "; something listens there: give another port under `gates:`, and have the program look there for its server"
	}
	return fmt.Errorf("the gate for %s at %s: %w%s", name, at, err, what)
}

// orRefused is why the program cannot be explored, if the gates know.
func (x *Runner) orRefused(err error) error {
	x.floor.mu.Lock()
	defer x.floor.mu.Unlock()
	if x.floor.refused != nil {
		return x.floor.refused
	}
	return err
}

// asRefused finds a program that a gate has turned away.
func asRefused(err error) (error, bool) {
	var refused *wire.Refused
	ok := errors.As(err, &refused)
	return refused, ok
}

func (x *Runner) programOf(buyer int) *instance {
	if len(x.programs) == 1 {
		return x.programs[0]
	}
	return x.programs[buyer-1]
}

// kill ends the program at once.
func (i *instance) kill() {
	i.program.Stop()
	i.program = nil
}

var errStuck = errors.New("the program that runs already is stuck, and only its owner can start it anew; `shared:` starts it as often as it takes")

// end kills a program, and returns when the servers have rolled back what it had open.
func (x *Runner) end(ctx context.Context, i *instance) error {
	if i.line == "" {
		return errStuck
	}
	if i.up() {
		i.kill()
	}
	conns := x.floor.of(i.buyer)
	for _, c := range conns {
		c.Cut()
	}
	x.floor.open()
	for _, c := range conns {
		if err := x.backends[c.Protocol].end(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// again starts a new program in the place of one that has ended.
func (x *Runner) again(ctx context.Context, i *instance) error {
	if err := x.start(i); err != nil {
		return err
	}
	if err := x.ready(ctx, i); err != nil {
		return err
	}
	if err := x.rehearse(ctx, i); err != nil {
		return err
	}
	return x.idle(ctx, i)
}

// buyersOf are the numbers of the buyers that an instance serves.
func (x *Runner) buyersOf(i *instance) (ids []int) {
	for n := range x.app.Buyers {
		if i.buyer == 0 || i.buyer == n+1 {
			ids = append(ids, n+1)
		}
	}
	return ids
}

// rehearse lets the instance's buyers through, with the gates open and all at once, twice:
// it fills its pools, and loads what it loads at the first request.
func (x *Runner) rehearse(ctx context.Context, i *instance) error {
	if x.shared {
		return x.rehearseShared(ctx, i)
	}
	x.floor.open()
	for range 2 {
		if err := x.servers.Reset(ctx); err != nil {
			return err
		}
		r := x.newRun(false)
		for _, id := range x.buyersOf(i) {
			if err := r.send(ctx, r.buyer(id)); err != nil {
				return err
			}
		}
		for _, id := range x.buyersOf(i) {
			b := r.buyer(id)
			select {
			case <-b.answered:
			case <-time.After(x.patience):
				return x.orRefused(fmt.Errorf("buyer %d alone gets no answer within %s from %s%s", id, x.patience, x.app.Buyers[id-1].URL, i.said()))
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// idle waits until the programs are at rest, and notes what they wait for then.
func (x *Runner) idle(ctx context.Context, programs ...*instance) error {
	r := x.newRun(false)
	for deadline := time.Now().Add(x.patience); !r.restful(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(deadline) {
			i := programs[max(0, slices.IndexFunc(programs, func(i *instance) bool { return !i.program.Asleep() }))]
			return fmt.Errorf("%s: it does not come to rest within %s after a request; a program that works by itself all the time cannot be explored%s", i.what(x), x.patience, i.said())
		}
	}
	for _, i := range programs {
		if err := i.program.Refresh(); err != nil {
			return err
		}
	}
	for range idleLooks {
		for _, i := range programs {
			i.program.Baseline()
		}
		time.Sleep(idlePause)
	}
	return nil
}

// The idle program is looked at so often: a timer that comes twice a second is in it.
const (
	idleLooks = 60
	idlePause = 10 * time.Millisecond
)

// Prepare lets each buyer through alone, and all together, with the gates open, and waits
// until the programs are idle. See Check for what it saw.
func (x *Runner) Prepare(ctx context.Context) error {
	check, err := x.Check(ctx)
	if err != nil {
		return err
	}
	return check.Err()
}

// Stated is schedule.Runner.Stated: what a program knows cannot be seen.
func (x *Runner) Stated() bool { return false }

// Run is schedule.Runner.Run. What goes wrong in the program or between it and its servers
// is a schedule.Void.
func (x *Runner) Run(ctx context.Context, choose schedule.Chooser, observe bool) (e schedule.Ended, err error) {
	x.ctx = ctx
	r := x.newRun(observe)
	if err := r.early(ctx); err != nil {
		return e, err
	}
	if err := x.servers.Reset(ctx); err != nil {
		return e, err
	}
	if err := r.early(ctx); err != nil {
		return e, err
	}
	if r.expired, err = x.expired(ctx); err != nil {
		return e, err
	}
	e, err = r.play(ctx, choose)
	e.Compound = r.several
	if err == nil && !e.Pruned && !e.Cut {
		e.Verdict, e.Why, e.Findings, err = r.judge(ctx)
		e.Steps, e.Watch, e.Outcomes = r.record.steps, r.record.columns, r.outcomes()
	}
	if _, void := schedule.AsVoid(err); !void {
		x.habits.learn(r.lessons)
	}
	stuck := err != nil && !errors.Is(err, schedule.ErrDivergence)
	if err == nil && !e.Pruned && !e.Cut { // else there is more to come
		stuck = len(r.deadEnd()) > 0
	}
	after := r.finish(context.WithoutCancel(ctx), stuck)
	if errors.Is(after, errStuck) && e.Why != "" {
		after = fmt.Errorf("%w, after an order that is %s: %s", after, e.Verdict, e.Why)
	}
	return e, errors.Join(err, after)
}

// expired is how many keys of Redis the clock has removed so far.
func (x *Runner) expired(ctx context.Context) (int, error) {
	if x.backends["redis"] == nil {
		return 0, nil
	}
	return x.servers.Redis().Expired(ctx)
}

// early: nothing may stand at a gate when a run begins. What came late belongs to the run
// before, whose result is known already: so this one is void, in its place.
func (r *run) early(ctx context.Context) error {
	f := r.x.floor
	f.mu.Lock()
	var late []string
	for _, list := range [][]*op{f.fresh, f.held, f.flying, f.answered} {
		for _, o := range list {
			late = append(late, o.of())
		}
	}
	f.mu.Unlock()
	if len(late) == 0 {
		f.close()
		return nil
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	return voided("the program sends by itself when no buyer is there", "%s", strings.Join(late, ", "))
}

// Close ends the programs and their networks.
func (x *Runner) Close() (err error) {
	x.floor.open()
	for _, i := range x.programs {
		err = errors.Join(err, i.stop())
	}
	return err
}

// Servers says what the program talks to, for a report: "MariaDB 10.11.14, Redis 7.0.15".
func (x *Runner) Servers() string { return x.servers.Versions() }
