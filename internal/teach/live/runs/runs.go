// Package runs sends the crowds that are asked for on the live page, one at a time, and
// keeps the last of them with all that they showed.
//
//	POST /live/runs -> Keeper.Start -> Sender.Send -> Recorder -> hub (what the pages draw)
//	                                                           -> Run (what is kept)
//
// How a crowd is sent is the Sender's, which is the command's: this room knows no shop. What
// is kept is in memory, and ends with the shop.
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
	kept      = 50      // runs
	maxEvents = 10_000  // of a run
	allEvents = 100_000 // of all runs: the oldest lose theirs first
)

// The states of a run.
const (
	Running = "running"
	Done    = "done"
	Stopped = "stopped" // by hand, or with the shop
	Failed  = "failed"  // something that it needs was missing or down
)

// A Request is what is asked for on the page.
type Request struct {
	Strategies []string `json:"strategies"`
	Product    string   `json:"product"`
	Stock      int64    `json:"stock"`
	Buyers     int      `json:"buyers"`
	Processes  int      `json:"processes"`
	Fault      string   `json:"fault,omitempty"` // struck in each crowd; "" for none

	// Spared are strategies that were asked for and that the fault would not strike, and why.
	// Check sets it, and leaves them out.
	Spared []string `json:"-"`
}

// A Fault is one that can be struck here.
type Fault struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// A Sender sends crowds.
type Sender interface {
	// Check says what is wrong with a request, and resolves what is said in other words.
	Check(r *Request) error
	// Command is what repeats it.
	Command(r Request) string
	Faults() []Fault
	// Send sends the crowds of all strategies, one after the other. The report has those that
	// were judged, with an error, too.
	Send(ctx context.Context, r Request, to *Recorder) (rush.Report, error)
}

// A Strike is a fault that was to strike a crowd.
type Strike struct {
	Fault    string    `json:"fault"`
	Strategy string    `json:"strategy"`
	At       time.Time `json:"at"`
	Proof    string    `json:"proof,omitempty"`   // that it struck
	Missed   string    `json:"missed,omitempty"`  // why it did not
	ByHand   bool      `json:"by_hand,omitempty"` // somebody has chosen the moment
}

func (s Strike) byHand() bool { return s.ByHand && s.Proof != "" }

// TooLate is one that was asked for when the last crowd, of this strategy, was gone.
func TooLate(fault, strategy string) Strike {
	return Strike{Fault: fault, Strategy: strategy, At: time.Now(), Missed: "the last crowd was gone", ByHand: true}
}

// A Row is a verdict in brief.
type Row struct {
	Strategy string          `json:"strategy"`
	Verdict  verdict.Verdict `json:"verdict"`
	Promise  verdict.Verdict `json:"promise"`
	Kept     bool            `json:"kept"` // nothing else was promised
	Oversold int64           `json:"oversold"`
	Drift    int64           `json:"drift"`
}

// A Summary is a run in a list.
type Summary struct {
	ID      string    `json:"id"`
	Number  int       `json:"number"` // since the shop's start
	Started time.Time `json:"started"`
	TookMS  float64   `json:"took_ms"` // 0 while it runs
	State   string    `json:"state"`
	Request
	Spared  []string `json:"left_out,omitempty"` // the Request's, which is no part of what is asked for
	Command string   `json:"command"`            // that repeats it
	Rows    []Row    `json:"rows"`
	Strikes []Strike `json:"strikes"`
	Error   string   `json:"error,omitempty"` // why there are no more rows
}

// A Run is all that is kept of one.
type Run struct {
	Summary
	Now    string      `json:"now,omitempty"` // the strategy whose crowd is under way
	Report rush.Report `json:"report"`        // as shop rush --json prints it
	Lanes  []live.Lane `json:"lanes"`         // as they stood when each crowd was judged

	// Events are the first of them; LeftOut counts the others.
	Events  []history.Event `json:"events"`
	LeftOut int             `json:"events_left_out"`
}

// What Start, Strike and Stop refuse.
var (
	ErrBusy = errors.New("a rush is under way: one at a time; wait for it or stop it")
	ErrIdle = errors.New("no rush is under way")
	errEnds = errors.New("the shop is about to end")
)

// A Keeper starts runs and keeps them. It alone knows which run is under way. Its methods may be
// called by several goroutines.
type Keeper struct {
	hub    *live.Hub
	sender Sender

	ctx    context.Context // of all runs: Close ends it
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	number int
	runs   []*Run             // the last one first
	stop   context.CancelFunc // of the run that is under way; nil: none is
	strike chan string        // faults that are to strike it now
}

// NewKeeper returns one without runs, and has the pages know it.
func NewKeeper(hub *live.Hub, sender Sender) *Keeper {
	k := &Keeper{hub: hub, sender: sender}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	hub.Set("faults", append([]Fault{}, sender.Faults()...))
	k.publish()
	return k
}

// Close stops the run that is under way, and waits until it has ended.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.cancel() // whoever starts afterwards is refused, so nobody joins those who are waited for
	k.mu.Unlock()
	k.all.Wait()
}

// Start begins a run, which goes on without who asked for it. ErrBusy while another is under
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

// run sends the crowds and notes how it ended.
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
	for len(k.strike) > 0 { // the sender has ended, and StrikeNow needs the mutex
		run.Strikes = append(run.Strikes, TooLate(<-k.strike, run.Strategies[len(run.Strategies)-1]))
	}
	k.forget()
	k.hub.Release(run.Product)
	k.publish()
}

// forget drops events until all that are kept are few enough.
func (k *Keeper) forget() {
	n := 0
	for _, run := range k.runs {
		if n += len(run.Events); n > allEvents {
			n -= len(run.Events)
			run.LeftOut, run.Events = run.LeftOut+len(run.Events), nil
		}
	}
}

// StrikeNow has a fault strike the crowd that is under way. ErrIdle when none is.
func (k *Keeper) StrikeNow(name string) error {
	if err := k.CheckFault(name); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop == nil {
		return fmt.Errorf("%w: send a crowd, or one that it is to strike", ErrIdle)
	}
	select {
	case k.strike <- name:
		return nil
	default:
		return fmt.Errorf("%w; a fault is about to strike it already", ErrBusy)
	}
}

// CheckFault refuses a fault that cannot be struck here.
func (k *Keeper) CheckFault(name string) error {
	var names []string
	for _, f := range k.sender.Faults() {
		if f.Name == name {
			return nil
		}
		names = append(names, f.Name)
	}
	return fmt.Errorf("fault %q cannot be struck on this engine; there are %s", name, strings.Join(names, ", "))
}

// Stop ends the run that is under way. ErrIdle when none is.
func (k *Keeper) Stop() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop == nil {
		return ErrIdle
	}
	k.stop()
	return nil
}

// Summaries are the runs, the last one first.
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

// copied shares nothing with what goes on.
func (s Summary) copied() Summary {
	s.Rows, s.Strikes = slices.Clone(s.Rows), slices.Clone(s.Strikes)
	return s
}

// Run finds one by its ID.
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

// publish has the pages know the runs. A page draws the last one's lanes with their rows.
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
