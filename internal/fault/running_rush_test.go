package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
)

// fakeProcess records the commands that it is given.
type fakeProcess struct {
	mu   sync.Mutex
	told []string

	answers bool         // whether the process answers
	holding *RunningRush // its buyer is stopped as soon as one is requested; nil: none is

	notBefore int // number of requests until a buyer is stopped
}

func (p *fakeProcess) Kill() error                                 { return nil }
func (p *fakeProcess) StartAgain(context.Context) error            { return nil }
func (p *fakeProcess) Freeze() error                               { return nil }
func (p *fakeProcess) Thaw() error                                 { return nil }
func (p *fakeProcess) Ended() bool                                 { return true }
func (p *fakeProcess) Answers(context.Context, time.Duration) bool { return p.answers }
func (p *fakeProcess) Tell(command string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, command)
	if p.holding == nil || !strings.HasPrefix(command, "hold ") {
		return nil
	}
	if p.notBefore--; p.notBefore <= 0 {
		go p.holding.Note(firstProcess, history.Event{Kind: history.Holding, Purchaser: "ann"})
	}
	return nil
}

// wentOn reports whether the held buyer was told to go on.
func (p *fakeProcess) wentOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.told, "go ann")
}

func newTestRush() (*RunningRush, *fakeProcess) {
	p := &fakeProcess{}
	return NewRunningRush(nil, p, "apple", failpoint.Commit, Times{Wait: time.Minute, Lease: time.Second}, nil), p
}

// TestOneAtATime: a fault waits until the fault before it has ended.
func TestOneAtATime(t *testing.T) {
	r, _ := newTestRush()
	inside, goOn := make(chan string, 2), make(chan struct{})
	fault := func(name string) Fault {
		return Fault{Inject: func(context.Context, Field) (string, error) {
			inside <- name
			<-goOn
			return name, nil
		}}
	}
	var all sync.WaitGroup
	all.Go(func() { _, _ = r.Inject(t.Context(), fault("first")) })
	<-inside
	all.Go(func() { _, _ = r.Inject(t.Context(), fault("second")) })
	select {
	case <-inside:
		t.Error("two faults are injected into one rush at once")
	case <-time.After(100 * time.Millisecond): // a longer wait could only find more
	}
	close(goOn)
	all.Wait()
}

// TestRepairs: a failed repair is an error of the harness, even if the fault missed. The other
// repairs run nevertheless, the last one first.
func TestRepairs(t *testing.T) {
	r, _ := newTestRush()
	var done []string
	_, err := r.Inject(t.Context(), Fault{Inject: func(_ context.Context, f Field) (string, error) {
		f.afterwards(func(context.Context) error { done = append(done, "first"); return nil })
		f.afterwards(func(context.Context) error { done = append(done, "second"); return context.DeadlineExceeded })
		return "", missed("nobody was there")
	}})
	if errors.Is(err, ErrMissed) || err == nil || !slices.Equal(done, []string{"second", "first"}) {
		t.Errorf("%v; done %q", err, done)
	}
}

// TestNoteNeverWaits: a second buyer that stops goes on, and Note does not block.
func TestNoteNeverWaits(t *testing.T) {
	r, p := newTestRush()
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		for _, name := range []string{"ann", "bob"} {
			r.mu.Lock()
			r.waiting = true
			r.mu.Unlock()
			r.Note(firstProcess, history.Event{Kind: history.Holding, Purchaser: name})
		}
	}()
	select {
	case <-noted:
	case <-time.After(10 * time.Second):
		t.Fatal("the process that writes its history is kept waiting")
	}
	if !slices.Equal(p.told, []string{"go bob"}) || <-r.stops != "ann" {
		t.Errorf("told %q", p.told)
	}
}
