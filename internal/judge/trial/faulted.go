package trial

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/nearest"
	"github.com/oversell/oversell/internal/teach/live/runs"
)

// crowds sends the crowds of a rush, one burst of buyers for each strategy, while faults are injected.
type crowds struct {
	engine *engine.Engine
	rush   *Crowd // rush of the current strategy
	bed    *Storefront
	to     onlooker
	ctx    context.Context // ends when the rush ends

	standby  *fault.Standby // replica that takes over from Redis if the fault is a failover
	mu       sync.Mutex
	strategy string             // strategy of the current crowd; "" once the crowd is judged
	last     string             // strategy of the last crowd
	field    *fault.RunningRush // the current crowd, as a fault sees it; may be nil
	asked    []string           // faults that the live page requests for the next crowd
	striking sync.WaitGroup
	missed   string // why the fault of the rush did not take effect in the last crowd; "" if it did
	byHand   bool   // the live page has injected a fault into this strategy's crowds
	broken   error  // the error of a failed repair
}

// newCrowds returns the crowds of a rush on an open storefront (the shops under test). To close the storefront
// also closes the crowds' standby.
func newCrowds(ctx context.Context, e *engine.Engine, o *Crowd, bed *Storefront, to onlooker) *crowds {
	c := &crowds{engine: e, rush: o, bed: bed, to: to, ctx: ctx, standby: fault.NewStandby(e)}
	bed.closers = append(bed.closers, c.standby.Close)
	return c
}

type onlooker interface {
	Event(e history.Event)
	Struck(s runs.Strike)
}

// send sends the crowd of one strategy and injects the rush's fault. It returns when all injections have ended.
func (c *crowds) send(ctx context.Context, o *Crowd, name string, watch Watching) (rush.Result, error) {
	c.mu.Lock()
	c.rush, c.strategy, c.last, c.byHand = o, name, name, false
	c.unproven()
	c.mu.Unlock()
	judged := watch.Judged
	watch.Judged = func(r rush.Result) {
		c.over()
		if judged != nil {
			judged(c.proven(r))
		}
	}
	watch.mended, watch.byHand = c.mended, c.struckByHand
	if err := c.prepare(ctx); err != nil {
		return rush.Result{}, err
	}
	result, err := o.rush(ctx, c.bed, name, watch)
	c.over()
	return c.proven(result), errors.Join(err, c.broken)
}

func (c *crowds) prepare(ctx context.Context) error {
	if f, ok := struckBy(c.rush.Fault); ok && f.Standby {
		return c.standby.Ready(ctx)
	}
	return nil
}

// FaultNames returns the names of faults.
func FaultNames(list []fault.Fault) (names []string) {
	for _, f := range list {
		names = append(names, string(f.Name))
	}
	return names
}

// CheckFault makes those checks of the fault that do not need open servers.
func (o *Crowd) CheckFault() error {
	switch names := FaultNames(fault.OfRush()); {
	case o.Fault == "" || slices.Contains(names, string(o.Fault)):
		return nil
	case slices.Contains(promise.Faults(), o.Fault):
		return fmt.Errorf("cannot inject %s into a running rush; use: shop verify --fault %[1]s --engine local", o.Fault)
	default:
		return nearest.Unknown("fault", string(o.Fault), names, "shop help faults")
	}
}

func struckBy(name promise.Condition) (fault.Fault, bool) {
	for _, f := range fault.OfRush() {
		if f.Name == name {
			return f, true
		}
	}
	return fault.Fault{}, false
}

// canStrike returns an error if the fault cannot be injected on this engine or in this rush.
func canStrike(o *Crowd, e *engine.Engine) error {
	f, ok := struckBy(o.Fault)
	if !ok {
		return nil
	}
	if err := onEngine(f, e); err != nil {
		return err
	}
	if why := tooFew(f, o.Processes); why != "" {
		return errors.New(why)
	}
	return nil
}

func onEngine(f fault.Fault, e *engine.Engine) error {
	if why := f.WhyNot(e); why != "" {
		return fmt.Errorf("cannot inject %s on this engine: %s; choose from: %s", f.Name, why, strings.Join(FaultNames(fault.OnEngine(e)), ", "))
	}
	return nil
}

func tooFew(f fault.Fault, processes int) string {
	if f.TwoProcesses && processes < 2 {
		return fmt.Sprintf("%s affects one process while another goes on: it needs 2 processes or more", f.Name)
	}
	return ""
}

// unused says why the rush's fault cannot affect a strategy. It returns "" if the fault can, or if there is no
// fault.
func unused(o *Crowd, name string) string {
	f, ok := struckBy(o.Fault)
	if !ok {
		return ""
	}
	return f.Unused(needsOf(name))
}

func needsOf(name string) []lockstrategy.Need {
	entry, _ := lockstrategy.ByName(name)
	return entry.Needs
}

// StrikeTimes sets the wait and the lease of the shops for a fault. A lease then ends while a buyer waits for it.
func (o *Crowd) StrikeTimes() {
	if o.Fault != "" {
		times := fault.DefaultTimes()
		o.Shops.Settings.Wait, o.Shops.Settings.LeaseTTL = times.Wait, times.Lease
	}
}

type noted struct {
	mu   sync.Mutex
	list []runs.Strike
}

// Event implements onlooker.
func (*noted) Event(history.Event) {}

// Struck implements onlooker.
func (n *noted) Struck(s runs.Strike) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, s)
}

func (n *noted) sentences() (all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.list {
		all = append(all, s.String())
	}
	return all
}

// unproven notes, before each crowd, that the rush's fault has not taken effect yet. The caller must hold the
// mutex.
func (c *crowds) unproven() {
	c.missed = ""
	if c.rush.Fault != "" {
		c.missed = string(c.rush.Fault) + " did not take effect"
	}
}

func (c *crowds) struckByHand() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byHand
}

// over ends the strategy's crowds and waits for the end of their injections.
func (c *crowds) over() {
	c.mu.Lock()
	c.strategy = ""
	c.leave()
	c.mu.Unlock()
	c.striking.Wait()
}

// mended waits for the end of the injections into the current crowd, and until every shop serves again.
func (c *crowds) mended(ctx context.Context) error {
	c.mu.Lock()
	c.leave()
	c.mu.Unlock()
	c.striking.Wait()
	for _, shop := range c.bed.Children {
		if !shop.Ready(ctx, time.Minute) {
			return errors.New("a shop was not ready within a minute")
		}
	}
	return c.prepare(ctx)
}

// leave ends the current fault.RunningRush. The caller must hold the mutex.
func (c *crowds) leave() {
	if c.field != nil {
		c.field.Over()
	}
	c.field = nil
}

// proven returns the result of a crowd. It makes the result inconclusive if the strategy held and the
// requested fault did not take effect.
func (c *crowds) proven(r rush.Result) rush.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missed != "" && r.Verdict == verdict.Holds {
		r.Verdict, r.Reason = verdict.Inconclusive, c.missed
	}
	return r
}

// record handles one line of the history that a shop process writes.
func (c *crowds) record(process int, line []byte) {
	var e history.Event
	if json.Unmarshal(line, &e) != nil {
		return
	}
	c.to.Event(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Kind == history.Restocked && c.strategy != "" { // another crowd is about to begin
		c.newField()
	}
	if c.field != nil {
		c.field.Note(process, e)
	}
}

// newField begins a fault.RunningRush, through which faults act on the next crowd. The caller must hold the mutex.
func (c *crowds) newField() {
	c.leave()
	c.unproven()
	settings := c.rush.Shops.Settings
	times := fault.Times{Wait: settings.Wait, Lease: settings.LeaseTTL}
	c.field = fault.NewRunningRush(c.engine, c.bed.Children[0], c.rush.Product, pointOf(c.engine.Database), times)
	c.field.Links, c.field.Standby = c.bed.Children.Links(), c.standby
	entry, _ := lockstrategy.ByName(lockstrategy.Resolve(c.last))
	c.field.InGroups = entry.InGroups
	if c.rush.Fault != "" {
		c.start(string(c.rush.Fault), false)
	}
	for _, name := range c.asked {
		c.start(name, true)
	}
	c.asked = nil
}

// pointOf returns the failpoint at which a fault stops a buyer.
func pointOf(database string) failpoint.Point {
	if dialect.Kind(database) == dialect.SQLite { // SQLite has one writer, so a buyer stopped at its COMMIT would block all others
		return failpoint.Read
	}
	return failpoint.Commit
}

// start injects a fault into the current crowd, in a goroutine. The caller must hold the mutex.
func (c *crowds) start(name string, byHand bool) {
	field, strategy := c.field, c.strategy
	for _, f := range fault.OnEngine(c.engine) {
		if string(f.Name) == name {
			c.striking.Go(func() { c.strike(f, field, strategy, byHand) })
		}
	}
}

func (c *crowds) strike(f fault.Fault, field *fault.RunningRush, strategy string, byHand bool) {
	note := runs.Strike{Fault: string(f.Name), Strategy: strategy, At: time.Now(), ByHand: byHand}
	proof, err := "", c.inVain(f, strategy)
	if err == nil {
		proof, err = field.Inject(c.ctx, f)
	}
	note.Proof = proof
	if err != nil {
		note.Proof, note.Missed = "", strings.TrimPrefix(err.Error(), fault.ErrMissed.Error()+": ")
	}
	missed := errors.Is(err, fault.ErrMissed)
	c.mu.Lock()
	switch {
	case f.Name != c.rush.Fault:
		c.byHand = c.byHand || !missed
	case err == nil:
		c.missed = ""
	case c.missed != "": // no earlier injection into this crowd took effect
		c.missed = fmt.Sprintf("%s did not take effect: %s", f.Name, note.Missed)
	}
	if err != nil && !missed {
		c.broken = errors.Join(c.broken, fmt.Errorf("%s: %w", f.Name, err))
	}
	c.mu.Unlock()
	c.to.Struck(note)
}

// inVain returns a fault.ErrMissed if the fault cannot affect the strategy or has too few processes.
func (c *crowds) inVain(f fault.Fault, strategy string) error {
	if why := cmp.Or(f.Unused(needsOf(strategy)), tooFew(f, c.rush.Processes)); why != "" {
		return fmt.Errorf("%w: %s", fault.ErrMissed, why)
	}
	return nil
}

// strikeWhenAsked injects each requested fault into the current crowd. If there is none, the next crowd gets
// the fault.
func (c *crowds) strikeWhenAsked(ctx context.Context, names <-chan string) {
	for {
		select {
		case name := <-names:
			c.mu.Lock()
			if c.field != nil {
				c.start(name, true)
			} else {
				c.asked = append(c.asked, name)
			}
			c.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// tooLate reports the faults that were requested after the last crowd.
func (c *crowds) tooLate() {
	for _, name := range c.asked {
		c.to.Struck(runs.TooLate(name, c.last))
	}
	c.asked = nil
}
