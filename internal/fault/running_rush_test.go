package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
)

type fakeProcess struct {
	mu   sync.Mutex
	told []string

	holding *RunningRush // rush whose buyer stops on the command hold; nil: no buyer stops
}

func (p *fakeProcess) Kill() error                                 { return nil }
func (p *fakeProcess) StartAgain(context.Context) error            { return nil }
func (p *fakeProcess) Freeze() error                               { return nil }
func (p *fakeProcess) Thaw() error                                 { return nil }
func (p *fakeProcess) Ended() bool                                 { return true }
func (p *fakeProcess) Answers(context.Context, time.Duration) bool { return false }
func (p *fakeProcess) Tell(command string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, command)
	if p.holding == nil || !strings.HasPrefix(command, "hold ") {
		return nil
	}
	go p.holding.Note(firstProcess, history.Event{Kind: history.Holding, Purchaser: "ann"})
	return nil
}

func (p *fakeProcess) wentOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.told, "go ann")
}

func newTestRush() (*RunningRush, *fakeProcess) {
	p := &fakeProcess{}
	return NewRunningRush(nil, p, "apple", failpoint.Commit, Times{Wait: time.Minute, Lease: time.Second}), p
}

// TestOneAtATime: a fault waits until the fault before it has ended.
func TestOneAtATime(t *testing.T) {
	r, _ := newTestRush()
	inside, goOn := make(chan string, 2), make(chan struct{})
	fault := func(name string) Fault {
		return Fault{InRush: func(context.Context, *RunningRush) (string, error) {
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
	case <-time.After(100 * time.Millisecond): // long enough for a second injection that does not wait
	}
	close(goOn)
	all.Wait()
}

// TestRepairs: a failed repair is an error of the harness, even if the fault missed. The other
// repairs run nevertheless, the last one first.
func TestRepairs(t *testing.T) {
	r, _ := newTestRush()
	var done []string
	_, err := r.Inject(t.Context(), Fault{InRush: func(_ context.Context, f *RunningRush) (string, error) {
		f.afterwards(func(context.Context) error { done = append(done, "first"); return nil })
		f.afterwards(func(context.Context) error { done = append(done, "second"); return context.DeadlineExceeded })
		return "", missed("nobody was there")
	}})
	if errors.Is(err, ErrMissed) || err == nil || !slices.Equal(done, []string{"second", "first"}) {
		t.Errorf("%v; done %q", err, done)
	}
}

// TestNoteNeverWaits: a second buyer that stops is told to go on at once, and Note does not block.
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

// memory is a Redis inside this process that looks like one of the engine's.
type memory struct {
	*miniredis.Miniredis
	addr  string
	keeps bool // whether it keeps its data over a restart
}

func (m *memory) Address() string { return m.addr }

func (m *memory) Kill() error {
	m.Close()
	if !m.keeps {
		m.FlushAll()
	}
	return nil
}

func (m *memory) Start() error { return m.StartAddr(m.addr) }

// TestRedisRestartInRush: a Redis that had no keys of the product, or comes back with its data, has forgotten
// nothing. The stopped buyer goes on in any case.
func TestRedisRestartInRush(t *testing.T) {
	for _, c := range []struct {
		name, key string
		keeps     bool
		want      string
	}{
		{"it forgets", "lock:{apple}", false, ""},
		{"it had another product's", "lock:{pear}", false, "no keys of the product"},
		{"it comes back with its file", "lock:{apple}", true, "came back with what it had"},
	} {
		r := miniredis.RunT(t)
		require.NoError(t, r.Set(c.key, "token"))
		rush, p := newTestRush()
		rush.Engine = &engine.Engine{LockServers: []engine.LockServer{{Need: string(lockstrategy.NeedsRedis), Restartable: &memory{r, r.Addr(), c.keeps}}}}
		p.holding = rush
		proof, err := rush.Inject(t.Context(), redisRestart())
		provenIn(t, c.name, proof, err, c.want)
		if !p.wentOn() {
			t.Errorf("%s: told %q", c.name, p.told)
		}
	}
}

// TestWhyNot: an engine without servers of its own offers the faults of processes. For every other
// fault of a rush it says what is missing.
func TestWhyNot(t *testing.T) {
	e := &engine.Engine{}
	for _, f := range OfRush() {
		struck, why := promise.Struck(f.Name), f.WhyNot(e)
		if ofServer := struck != nil || f.Name == promise.DBKill; ofServer != (why != "") {
			t.Errorf("%s: %q", f.Name, why)
		}
		if f.Unused(nil) == "" != (struck == nil) {
			t.Errorf("%s affects %v, and of a strategy without needs: %q", f.Name, struck, f.Unused(nil))
		}
	}
	for _, f := range OnEngine(e) {
		if f.WhyNot(e) != "" {
			t.Errorf("%s is offered", f.Name)
		}
	}
}
