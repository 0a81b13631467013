// Package runs sends the bursts of buyers that the live page asks for, one run at a time. A run sends one
// crowd of buyers for each strategy. The package keeps the last runs with their results.
//
//	POST /live/runs -> Keeper.Start -> Sender.Send -> Recorder -> hub (what the pages draw)
//	                                                           -> Run (what is kept)
//
// The command `shop serve` supplies the Sender, so this package does not depend on a shop. Runs are kept in
// memory and are lost when the shop ends.
package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/teach/live"
)

const (
	kept      = 50      // runs that are kept
	maxEvents = 10_000  // events kept of one run
	allEvents = 100_000 // events kept of all runs; the oldest runs lose theirs first
)

// The states of a run.
const (
	Running = "running"
	Done    = "done"
	Stopped = "stopped" // stopped by the class's leader, or by the end of the shop
	Failed  = "failed"  // a required server was missing or down
)

// A Request is a run that the page asks for.
type Request struct {
	Strategies []string `json:"strategies"`
	Product    string   `json:"product"`
	Stock      int64    `json:"stock"`
	Buyers     int      `json:"buyers"`
	Processes  int      `json:"processes"`
	Fault      string   `json:"fault,omitempty"` // injected into each crowd; "" for none

	// Spared are the requested strategies that the fault does not affect, with the reason. Check
	// moves them here from Strategies.
	Spared []string `json:"-"`
}

// A Fault is a fault that can be injected on this shop's servers.
type Fault struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// A Sender sends crowds, bursts of buyers, to the shop.
type Sender interface {
	// Check returns an error if a request is invalid, and replaces aliases in it.
	Check(r *Request) error
	// Command returns the command that repeats the request.
	Command(r Request) string
	Faults() []Fault
	// CheckFault returns an error if a fault cannot be injected on this shop's servers.
	CheckFault(name string) error
	// Send sends the crowds of all strategies, one after the other. Even after an error, the report
	// contains the crowds that were judged.
	Send(ctx context.Context, r Request, to *Recorder) (rush.Report, error)
}

// A Strike is the attempt to inject a fault into a crowd.
type Strike struct {
	Fault    string    `json:"fault"`
	Strategy string    `json:"strategy"`
	At       time.Time `json:"at"`
	Proof    string    `json:"proof,omitempty"`   // evidence that the fault took effect
	Missed   string    `json:"missed,omitempty"`  // why the fault did not take effect
	ByHand   bool      `json:"by_hand,omitempty"` // whether the leader has chosen the moment
}

func (s Strike) byHand() bool { return s.ByHand && s.Proof != "" }

// TooLate returns the Strike for a request that came after the last crowd, which bought under the
// given strategy.
func TooLate(fault, strategy string) Strike {
	return Strike{Fault: fault, Strategy: strategy, At: time.Now(), Missed: "the last crowd was gone", ByHand: true}
}

// A Row is the result of one strategy in short.
type Row struct {
	Strategy string          `json:"strategy"`
	Verdict  verdict.Verdict `json:"verdict"`
	Promise  verdict.Verdict `json:"promise"`
	Kept     bool            `json:"kept"` // whether the verdict is certain and agrees with the promise, if there is one
	Oversold int64           `json:"oversold"`
	Drift    int64           `json:"drift"`
}

// A Summary is a run in a list.
type Summary struct {
	ID      string    `json:"id"`
	Number  int       `json:"number"` // counted from the shop's start
	Started time.Time `json:"started"`
	TookMS  float64   `json:"took_ms"` // 0 during the run
	State   string    `json:"state"`
	Request
	Spared  []string `json:"left_out,omitempty"` // Request.Spared, which the JSON of a request lacks
	Command string   `json:"command"`            // the command that repeats the run
	Rows    []Row    `json:"rows"`
	Strikes []Strike `json:"strikes"`
	Error   string   `json:"error,omitempty"` // the reason if rows are missing
}

// A Run is a run with all its results.
type Run struct {
	Summary
	Now    string      `json:"now,omitempty"` // the strategy whose crowd is buying now
	Report rush.Report `json:"report"`        // as `shop rush --json` prints it
	Lanes  []live.Lane `json:"lanes"`         // as they were when each crowd was judged

	// Events are the first events. LeftOut counts the others.
	Events  []history.Event `json:"events"`
	LeftOut int             `json:"events_left_out"`
}

// Errors of Start, StrikeNow and Stop.
var (
	ErrBusy = errors.New("a rush is under way: one at a time; wait for it or stop it")
	ErrIdle = errors.New("no rush is under way")
	errEnds = errors.New("the shop is about to end")
)

// A Keeper starts runs and keeps them. Its methods may be called by several goroutines.
type Keeper struct {
	hub    *live.Hub
	sender Sender

	ctx    context.Context // context of all runs; Close ends it
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	number int
	runs   []*Run             // the latest first
	stop   context.CancelFunc // ends the run under way; nil: there is none
	strike chan string        // faults to inject into the run now
}

// NewKeeper returns a keeper without runs. It publishes the empty list of runs to the pages.
func NewKeeper(hub *live.Hub, sender Sender) *Keeper {
	k := &Keeper{hub: hub, sender: sender}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	hub.Set("faults", append([]Fault{}, sender.Faults()...))
	k.publish()
	return k
}

// Close stops the run under way and waits until it has ended.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.cancel() // later calls of Start are refused, so the set of runs to wait for does not grow
	k.mu.Unlock()
	k.all.Wait()
}

// Start begins a run, which continues after Start has returned. It returns ErrBusy while another run is under
// way.
func (k *Keeper) Start(r Request) (Summary, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.ctx.Err() != nil:
		return Summary{}, errEnds
	case k.stop != nil:
		return Summary{}, ErrBusy
	}
	ctx, stop := context.WithCancel(k.ctx)
	k.stop, k.strike = stop, make(chan string, 1)
	k.number++
	run := &Run{Summary: Summary{
		ID: strings.ToLower(rand.Text()[:10]), Number: k.number, Started: time.Now(), State: Running,
		Request: r, Spared: r.Spared, Command: k.sender.Command(r), Rows: []Row{}, Strikes: []Strike{},
	}}
	k.runs = append([]*Run{run}, k.runs[:min(len(k.runs), kept-1)]...)
	k.hub.Stage(r.Product, r.Strategies, r.Stock)
	k.publish()
	k.all.Go(func() { k.run(ctx, stop, run) })
	return run.Summary, nil
}

func (k *Keeper) run(ctx context.Context, stop context.CancelFunc, run *Run) {
	defer stop()
	report, err := k.sender.Send(ctx, run.Request, &Recorder{keeper: k, run: run, Strikes: k.strike})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stop, run.Now, run.Report = nil, "", report
	run.TookMS = float64(time.Since(run.Started).Microseconds()) / 1000
	switch {
	case err == nil:
		run.State = Done
	case ctx.Err() != nil:
		run.State, run.Error = Stopped, "it was stopped"
	default:
		run.State, run.Error = Failed, strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	run.Report.Unfinished = run.Error
	for len(k.strike) > 0 { // no more faults can arrive: the sender has ended, and StrikeNow needs the mutex
		run.Strikes = append(run.Strikes, TooLate(<-k.strike, run.Strategies[len(run.Strategies)-1]))
	}
	k.forget()
	k.hub.Release(run.Product)
	k.publish()
}

// forget drops the events of the oldest runs until all runs together have at most allEvents.
func (k *Keeper) forget() {
	n := 0
	for _, run := range k.runs {
		if n += len(run.Events); n > allEvents {
			n -= len(run.Events)
			run.LeftOut, run.Events = run.LeftOut+len(run.Events), nil
		}
	}
}

// StrikeNow injects a fault into the current crowd. It returns ErrIdle if there is none.
func (k *Keeper) StrikeNow(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop == nil {
		return fmt.Errorf("%w: send a crowd first, or a crowd with a fault", ErrIdle)
	}
	select {
	case k.strike <- name:
		return nil
	default:
		return fmt.Errorf("%w; a fault is already about to be injected", ErrBusy)
	}
}

// Stop ends the run under way. It returns ErrIdle if there is none.
func (k *Keeper) Stop() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop == nil {
		return ErrIdle
	}
	k.stop()
	return nil
}

// Summaries returns the runs, the latest first.
func (k *Keeper) Summaries() []Summary {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.summaries()
}

func (k *Keeper) summaries() []Summary {
	list := make([]Summary, 0, len(k.runs))
	for _, run := range k.runs {
		list = append(list, run.copied())
	}
	return list
}

// copied returns a copy that shares no memory with the run.
func (s Summary) copied() Summary {
	s.Rows, s.Strikes = slices.Clone(s.Rows), slices.Clone(s.Strikes)
	return s
}

// Run returns the run with that ID.
func (k *Keeper) Run(id string) (Run, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, run := range k.runs {
		if run.ID == id {
			found := *run
			found.Summary = run.copied()
			found.Lanes, found.Events = slices.Clone(run.Lanes), slices.Clone(run.Events)
			found.Report.Results = slices.Clone(run.Report.Results)
			return found, true
		}
	}
	return Run{}, false
}

// publish sends the summaries of the runs to the pages.
func (k *Keeper) publish() {
	k.hub.Set("runs", k.summaries())
	if len(k.runs) == 0 {
		return
	}
	last := k.runs[0]
	k.hub.Set("run", struct {
		Summary
		Now     string        `json:"now,omitempty"`
		Results []rush.Result `json:"results"`
	}{last.Summary, last.Now, append([]rush.Result{}, last.Report.Results...)})
}
