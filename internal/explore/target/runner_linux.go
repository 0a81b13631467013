package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/rows"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/retry"
	"github.com/oversell/oversell/internal/explore/target/session"
)

// A Runner implements schedule.Runner for a program. Only one goroutine may use it. It owns the programs, and the
// facts that their runs have revealed. Each run is a separate value.
type Runner struct {
	programs  session.Programs
	spec      Spec
	rehearsal *session.Rehearsal
	recovery  *session.Recovery
	guard     *ignoreGuard // checks that ignored commands hide no bug
	tries     int          // Spec.Tries
	steps     int          // maximum number of steps of a schedule
	solo      int          // maximum number of commands that a buyer alone could have at the servers at once
	racing    []Alone      // buyers that break a rule even when they run alone
	watched   []string     // the columns of the query `watch` in oversell.yaml
	learned   learned

	outlasting *outlasting // a run of Outlast in progress; nil: none
}

// A learned keeps the facts from one run for later runs of the exploration.
type learned struct {
	varying naming.Varying
	coarse  bool          // generated numbers are short, so names of commands contain no number, see naming.New
	routine retry.Routine // commands that a buyer alone repeats, see retry.Polling
	habits  habits        // the usual commands of buyers that share an instance
	memory  memory
	catalog *rows.Catalog // facts of the databases' catalogs, to find the rows that commands use (footprints); nil: the search uses none
	short   bool          // a server has generated a number that is too short to be recognized in texts
	waiting *waiting      // the earliest step at which a buyer was held back, since its retries are futile; nil: none
	pushed  bool          // a server has pushed a message, so a buyer listens
	serial  *serialOracle // how each serial run ends; nil: the rules of `never` judge the runs
}

// New starts the instances of the program and waits until all are ready. Call Check before the first Run, and Close at
// the end. The error is one line that tells the user the next step.
func New(ctx context.Context, s Spec) (*Runner, error) {
	x, err := newRunner(s)
	if err != nil {
		return nil, err
	}
	if x.programs.Instances.Shared() && slices.Contains(s.Events, schedule.Crash) {
		err = errors.New("--events crash: all buyers share one instance, so one of them cannot crash alone; give `run:`, which starts one for each")
	} else {
		err = x.programs.Instances.Launch(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// newRunner returns a runner whose programs are not started.
func newRunner(s Spec) (*Runner, error) {
	programs, err := session.Open(s.App, s.Servers)
	if err != nil {
		return nil, err
	}
	return runnerOf(programs, session.NewRehearsal(programs), s), nil
}

// runnerOf returns a runner for programs that are running or about to be started.
func runnerOf(programs session.Programs, rehearsal *session.Rehearsal, s Spec) *Runner {
	x := &Runner{
		programs: programs, spec: s, rehearsal: rehearsal, guard: &ignoreGuard{programs: programs},
		tries: cmp.Or(s.Tries, DefaultTries), steps: retry.MaxSteps, learned: learned{routine: retry.Routine{}, memory: newMemory()},
	}
	x.recovery = session.NewRecovery(x.rehearsal)
	x.rehearsal.Together = x.together
	x.learned.varying.Asked = s.App.Random
	return x
}

// Next returns a runner for the same programs with other buyers: one buyer, or the same number as before. Call Check on
// it, and later Close. The old runner must not be used any more.
func (x *Runner) Next(ctx context.Context, buyers []app.Request) (*Runner, error) {
	if err := x.recovery.Recover(ctx); err != nil {
		return nil, err
	}
	x.programs.App.Buyers = buyers
	return runnerOf(x.programs, x.rehearsal.Next(), x.spec), nil
}

// Watch makes Check wait for the time d before it sends a buyer. Check.Pollers then has the commands that the programs
// send meanwhile. Without Watch, it has only those of the half second in which the programs were found idle. Call Watch
// before Check.
func (x *Runner) Watch(d time.Duration) { x.rehearsal.Watch = d }

// Racing returns one line about a buyer that breaks a rule even when it runs alone, since its own commands race; "" if
// there is none. Call Check before.
func (x *Runner) Racing() string {
	if len(x.racing) == 0 {
		return ""
	}
	a := x.racing[0]
	return fmt.Sprintf("buyer %d alone has %d commands under way at once and breaks %s, so it races itself, unless the rule is wrong", a.Buyer, a.AtOnce, a.Races)
}

// Polls implements schedule.Poller.
func (x *Runner) Polls() bool { return len(x.programs.Gates.OwnTraffic.Pollers()) > 0 }

// Anew implements schedule.Anew.
func (x *Runner) Anew() { x.recovery.Anew() }

// Stated implements schedule.Runner. It returns false, since the explorer cannot see a program's state.
func (x *Runner) Stated() bool { return false }

// Run implements schedule.Runner. If the program fails, or its servers cannot be reached, the error is a schedule.Void.
func (x *Runner) Run(ctx context.Context, choose schedule.Chooser, observe bool) (e schedule.Ended, err error) {
	if err := x.recovery.Recover(ctx); err != nil {
		return e, err
	}
	r := x.newRun(observe, false)
	if x.outlasting != nil {
		x.outlasting.polling = r.delivery.polling
	}
	if err := r.clearing.Early(ctx); err != nil {
		return e, err
	}
	if err := x.programs.Reset(ctx); err != nil {
		return e, err
	}
	x.programs.Gates.Connections.Forget()
	if err := r.clearing.Early(ctx); err != nil {
		return e, err
	}
	if err := x.guard.stretch(ctx); err != nil {
		return e, err
	}
	if r.expired, err = x.programs.Expired(ctx); err != nil {
		return e, err
	}
	if err := r.rows.Begin(ctx, x.programs.Servers.SQL("postgres")); err != nil {
		return e, err
	}
	possible := events{x.programs, r.buyers, r.choices}.all()
	limits := conduct.Limits{Steps: x.stepLimit(), Endless: r.delivery.loop.Endless, Pauses: x.programs.Instances.Shared()}
	if e, err = conduct.New(r, possible, x.spec.Events, limits).Run(ctx, choose); err == nil && x.learned.serial != nil {
		err = x.learned.serial.age(ctx, checker{x}, &e)
	}
	return e, err
}

// together serves all buyers of a shared instance at once, as a rehearsal. No buyer is served before all requests are
// inside the program, so its pool opens a connection for each. Otherwise the speed of the machine would decide how many
// connections the pool has, and that can change the course of a schedule.
func (x *Runner) together(ctx context.Context) error {
	r := x.newRun(false, false)
	x.programs.Gates.Close()
	_, err := conduct.New(unjudged{r}, nil, nil, conduct.Limits{Steps: x.steps}).Run(ctx, func(p *schedule.Point) (string, error) {
		if coming := r.choices.coming; len(coming) > 0 {
			return strconv.Itoa(coming[0].ID), nil
		}
		return p.FirstMove(), nil
	})
	if _, void := schedule.AsVoid(err); err != nil && !void {
		return err
	}
	x.programs.Gates.Open() // after a discarded run, the buyers finish without the gates
	if err = r.clearing.Served(ctx); errors.Is(err, session.ErrJam) {
		r.buyers.HangUp(r.buyers.All...)
	}
	return err
}

// An unjudged is a run that ends without a verdict.
type unjudged struct{ *run }

// End implements conduct.Subject.
func (unjudged) End(_ context.Context, _ *schedule.Ended, err error) error { return err }

// Printed returns the output of the program's instances since the last call, one instance after the other. It returns
// at most 4 KiB for each.
func (x *Runner) Printed() string {
	var all strings.Builder
	for _, i := range x.programs.Instances.All {
		all.WriteString(i.Printed())
	}
	return all.String()
}

// Close ends the programs and their networks.
func (x *Runner) Close() (err error) {
	x.programs.Gates.Open()
	for _, i := range x.programs.Instances.All {
		err = errors.Join(err, i.Stop())
	}
	return errors.Join(err, x.programs.Gates.End())
}
