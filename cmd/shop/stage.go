package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/dialect"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/history"
	"github.com/oversell/oversell/internal/live/runs"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/rush"
	"github.com/oversell/oversell/internal/strike"
	"github.com/oversell/oversell/internal/verdict"
)

// A stage sends the crowds of the live page: the rush of shop rush, behind which stand
// children of this shop on its servers. This shop itself would judge its sold-out check and
// its admission, too, and cannot be killed for it.
type stage struct {
	engine *engine.Engine
	flags  shopFlags
}

// rush is the command's for a request.
func (s stage) rush(r runs.Request) *rushOptions {
	o := &rushOptions{
		strategies: r.Strategies, product: r.Product, stock: r.Stock, buyers: r.Buyers, processes: r.Processes,
		restocks: 1, units: []int64{1}, expect: true, fault: promise.Condition(r.Fault), shops: s.flags,
	}
	o.shops.check, o.shops.admission, o.shops.hosts, o.shops.gather = false, noAdmission, nil, 0
	if o.fault != "" { // a lease has to end while somebody waits for it
		times := fault.DefaultTimes()
		o.shops.settings.Wait, o.shops.settings.LeaseTTL = times.Wait, times.Lease
	}
	return o
}

// Check is runs.Sender.Check.
func (s stage) Check(r *runs.Request) error {
	o := s.rush(*r)
	err := o.checkCrowd()
	if err == nil {
		err = o.checkOwn()
	}
	if err != nil {
		return errors.New(strings.TrimLeft(err.Error(), "-"))
	}
	if r.Product == "buy" { // see product.Shelf
		return errors.New(`a product cannot be called "buy"`)
	}
	bed := &testbed{}
	if _, err := o.on(bed, s.engine); err != nil {
		return err
	}
	r.Strategies, err = o.names(bed)
	return err
}

// Command is runs.Sender.Command.
func (s stage) Command(r runs.Request) string {
	config, preset := s.engine.URLs, lockstrategy.DefaultSettings()
	where := engine.Flags(s.engine.Name, config.LocalDB, config.LocalRedis)
	line := fmt.Sprintf("shop rush%s --strategy %s --stock %d --buyers %d --processes %d --expect", where, strings.Join(r.Strategies, ","), r.Stock, r.Buyers, r.Processes)
	if r.Product != purchase.DefaultProduct {
		line += " --product " + shellWord(r.Product)
	}
	for _, f := range []struct {
		name       string
		is, preset time.Duration
	}{{"wait", s.flags.settings.Wait, preset.Wait}, {"lease", s.flags.settings.LeaseTTL, preset.LeaseTTL}, {"poll", s.flags.settings.Poll, preset.Poll}} {
		if f.is != f.preset && r.Fault == "" {
			line += fmt.Sprintf(" --%s %s", f.name, f.is)
		}
	}
	if r.Fault != "" { // the rush has no faults: the matrix plays this one
		if where == "" {
			where = " --engine local"
		}
		line = fmt.Sprintf("shop verify%s --strategy %s --fault %s", where, strings.Join(r.Strategies, ","), r.Fault)
	}
	return line
}

// shellWord is a word as a shell takes it.
func shellWord(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// Faults is runs.Sender.Faults.
func (s stage) Faults() (list []runs.Fault) {
	for _, f := range strike.On(s.engine) {
		list = append(list, runs.Fault{Name: string(f.Name), About: f.About})
	}
	return list
}

// Send is runs.Sender.Send.
func (s stage) Send(ctx context.Context, r runs.Request, to *runs.Recorder) (report rush.Report, err error) {
	o, bed := s.rush(r), &testbed{}
	flags, err := o.on(bed, s.engine)
	if err != nil {
		return report, err
	}
	crowds := &crowds{stage: s, rush: o, bed: bed, to: to, ctx: ctx}
	defer func() { err = errors.Join(err, bed.close()) }()
	if err := bed.serveChildren(ctx, s.engine, flags, r.Processes, crowds.record); err != nil {
		return report, err
	}
	report = o.report(bed)
	strikes, ended := context.WithCancel(ctx)
	var striking sync.WaitGroup
	striking.Go(func() { crowds.strikeWhenAsked(strikes) })
	defer striking.Wait()
	defer ended()
	for _, name := range r.Strategies {
		result, err := crowds.send(ctx, name)
		if err != nil {
			return report, fmt.Errorf("%s: %w", name, err)
		}
		to.Ended(result)
		report.Results = append(report.Results, result)
	}
	return report, nil
}

// crowds are those of one run.
type crowds struct {
	stage
	rush *rushOptions
	bed  *testbed
	to   *runs.Recorder
	ctx  context.Context // of the run

	mu       sync.Mutex
	strategy string        // whose crowd is under way; "" when it has been judged
	field    *strike.Field // of the crowd; nil: none
	asked    []string      // faults that are to strike the next one
	striking sync.WaitGroup
	missed   string // why the last fault did not strike this strategy; "" when it did
	broken   error  // of a fault that could not mend what it broke
}

// send sends one strategy's crowd, with the fault in it.
func (c *crowds) send(ctx context.Context, name string) (rush.Result, error) {
	c.to.Begin(name)
	c.mu.Lock()
	c.strategy, c.missed = name, ""
	c.mu.Unlock()
	judged := func(r rush.Result) {
		c.over()
		c.to.Judged(c.proven(r))
	}
	result, err := c.rush.rush(ctx, c.bed, name, watching{judged: judged, mended: c.mended})
	c.over()
	return c.proven(result), errors.Join(err, c.broken)
}

// over: the strategy's crowds are gone, and what strikes them ends.
func (c *crowds) over() {
	c.mu.Lock()
	c.strategy = ""
	c.leave()
	c.mu.Unlock()
	c.striking.Wait()
}

// mended: a crowd has its answers, what strikes it has ended, and the shops serve.
func (c *crowds) mended(ctx context.Context) error {
	c.mu.Lock()
	c.leave()
	c.mu.Unlock()
	c.striking.Wait()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, url := range c.bed.children.URLs() {
		for !isOK(ctx, url+"/readyz") {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return errors.New("a shop was not ready within a minute")
			}
		}
	}
	return nil
}

// leave ends the field, under the mutex.
func (c *crowds) leave() {
	if c.field != nil {
		c.field.Over()
	}
	c.field = nil
}

// proven: what held without the fault that was asked for has shown nothing.
func (c *crowds) proven(r rush.Result) rush.Result {
	if c.rush.fault != "" && c.missed != "" && r.Verdict == verdict.Holds {
		r.Verdict, r.Reason = verdict.Inconclusive, c.missed
	}
	return r
}

// record takes a line of a child's history.
func (c *crowds) record(process int, line []byte) {
	var e history.Event
	if json.Unmarshal(line, &e) != nil {
		return
	}
	c.to.Event(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Kind == history.Restocked && c.strategy != "" { // another crowd is about to come
		c.newField()
	}
	if c.field != nil {
		c.field.Note(process, e)
	}
}

// newField is under the mutex.
func (c *crowds) newField() {
	c.leave()
	at := failpoint.Commit
	if dialect.Kind(c.engine.Database) == dialect.SQLite { // its one writer would keep all others out
		at = failpoint.Read
	}
	settings := c.rush.shops.settings
	c.field = strike.NewField(c.engine, processes{c.bed.children}, c.rush.product, at, settings.Wait, settings.LeaseTTL)
	if c.rush.fault != "" {
		c.start(string(c.rush.fault))
	}
	for _, name := range c.asked {
		c.start(name)
	}
	c.asked = nil
}

// start has a fault strike the crowd of the field, under the mutex.
func (c *crowds) start(name string) {
	field, strategy := c.field, c.strategy
	for _, f := range strike.On(c.engine) {
		if string(f.Name) == name {
			c.striking.Go(func() { c.strike(c.ctx, f, field, strategy) })
		}
	}
}

// strike strikes, and notes what came of it.
func (c *crowds) strike(ctx context.Context, f strike.Fault, field *strike.Field, strategy string) {
	note := runs.Strike{Fault: string(f.Name), Strategy: strategy, At: time.Now()}
	proof, err := field.Strike(ctx, f)
	note.Proof = proof
	if err != nil {
		note.Proof, note.Missed = "", strings.TrimPrefix(err.Error(), fault.ErrMissed.Error()+": ")
	}
	c.to.Struck(note)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missed = ""
	if err != nil {
		c.missed = fmt.Sprintf("%s did not strike: %s", f.Name, note.Missed)
	}
	if err != nil && !errors.Is(err, fault.ErrMissed) {
		c.broken = errors.Join(c.broken, fmt.Errorf("%s: %w", f.Name, err))
	}
}

// strikeWhenAsked strikes the crowd that is under way, or the next one.
func (c *crowds) strikeWhenAsked(ctx context.Context) {
	for {
		select {
		case name := <-c.to.Strikes:
			c.mu.Lock()
			if c.field != nil {
				c.start(name)
			} else {
				c.asked = append(c.asked, name)
			}
			c.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// processes are the children, as faults strike them.
type processes struct{ *children }

func (p processes) Freeze(process int) error { return fault.Freeze(p.at(process).Process) }
func (p processes) Thaw(process int) error   { return fault.Thaw(p.at(process).Process) }

func (p processes) Tell(process int, line string) error { return p.tell(process, line) }

// StartAgain starts another in the place of one that was killed, at its address: the crowd
// knows it by that.
func (p processes) StartAgain(ctx context.Context, process int) error {
	return p.startAt(ctx, process, strings.TrimPrefix(p.at(process).URL, "http://"))
}

// Answers asks the process for a sign of life.
func (p processes) Answers(ctx context.Context, process int, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return isOK(ctx, p.at(process).URL+"/healthz")
}

// isOK tells whether it is 200 that is answered, over a connection of its own.
func isOK(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
}
