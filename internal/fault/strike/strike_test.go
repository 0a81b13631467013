package strike

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/testbed"
)

// shops are processes that do what they are told, and note it.
type shops struct {
	mu    sync.Mutex
	told  []string
	links []testbed.Links

	answers bool   // they are there
	holding *Field // whose buyer is stopped as soon as one is asked for; nil: none is

	notBefore int // how often one must be asked for until it is
}

func (s *shops) Kill(int) error                                   { return nil }
func (s *shops) StartAgain(context.Context, int) error            { return nil }
func (s *shops) Freeze(int) error                                 { return nil }
func (s *shops) Thaw(int) error                                   { return nil }
func (s *shops) Ended(int) bool                                   { return true }
func (s *shops) Answers(context.Context, int, time.Duration) bool { return s.answers }
func (s *shops) Links() []testbed.Links                           { return s.links }
func (s *shops) Tell(_ int, line string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, line)
	if s.holding == nil || !strings.HasPrefix(line, "hold ") {
		return nil
	}
	if s.notBefore--; s.notBefore <= 0 {
		go s.holding.Note(struck, history.Event{Kind: history.Holding, Purchaser: "ann"})
	}
	return nil
}

// wentOn reports whether the buyer that was stopped was told to go on.
func (s *shops) wentOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.told, "go ann")
}

func newTestField() (*Field, *shops) {
	s := &shops{}
	return NewField(nil, s, "apple", failpoint.Commit, time.Minute, time.Second), s
}

// TestOneAtATime: a fault that is asked for while another strikes comes after it.
func TestOneAtATime(t *testing.T) {
	f, _ := newTestField()
	inside, goOn := make(chan string, 2), make(chan struct{})
	fault := func(name string) Fault {
		return Fault{Strike: func(context.Context, *Field) (string, error) {
			inside <- name
			<-goOn
			return name, nil
		}}
	}
	var all sync.WaitGroup
	all.Go(func() { _, _ = f.Strike(t.Context(), fault("first")) })
	<-inside
	all.Go(func() { _, _ = f.Strike(t.Context(), fault("second")) })
	select {
	case <-inside:
		t.Error("two faults strike one crowd at once")
	case <-time.After(100 * time.Millisecond): // it can only fail to see it
	}
	close(goOn)
	all.Wait()
}

// TestNoteNeverWaits: a buyer that stops while one is held goes on, and nobody waits for it.
func TestNoteNeverWaits(t *testing.T) {
	f, s := newTestField()
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		for _, name := range []string{"ann", "bob"} {
			f.mu.Lock()
			f.waiting = true
			f.mu.Unlock()
			f.Note(struck, history.Event{Kind: history.Holding, Purchaser: name})
		}
	}()
	select {
	case <-noted:
	case <-time.After(10 * time.Second):
		t.Fatal("the process that writes its history is kept waiting")
	}
	if !slices.Equal(s.told, []string{"go bob"}) || <-f.held != "ann" {
		t.Errorf("told %q", s.told)
	}
}
