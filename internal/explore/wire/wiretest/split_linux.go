package wiretest

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore/wire"
)

// A Splitting is an open Gate for one connection. It makes two steps of each command that Autocommits.
type Splitting struct {
	Recorder
	between func(o *wire.Command) // called between the two steps; nil: every command stays one step
	ended   chan struct{}
}

// NewSplitting returns a gate that calls between with each command between its two steps, from a
// goroutine of its connection. If between is nil, every command stays one step.
func NewSplitting(between func(o *wire.Command)) *Splitting {
	return &Splitting{between: between, ended: make(chan struct{})}
}

// Arrived implements wire.Gate.
func (s *Splitting) Arrived(o *wire.Command) {
	if s.between != nil && o.Autocommits {
		o.Split(func() bool {
			s.between(o)
			return false
		})
	}
	s.Recorder.Arrived(o)
}

// Left implements wire.Gate.
func (s *Splitting) Left(*wire.Conn, error) { close(s.ended) }

// Answers waits for the end of the connection. It returns the bytes of the answer to each gated command.
func (s *Splitting) Answers(t testing.TB) (all []string) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection has not ended")
	}
	for _, o := range s.Commands() {
		if o.Gated {
			all = append(all, o.Text+": "+string(o.Answer.Raw))
		}
	}
	return all
}
