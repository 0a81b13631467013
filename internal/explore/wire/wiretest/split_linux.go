package wiretest

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore/wire"
)

// A Splitting is an open Gate for one connection. It divides each command with Autocommits into two
// steps.
type Splitting struct {
	Recorder
	between func(o *wire.Command) // called between the two steps; nil: no command is divided
	ended   chan struct{}
}

// NewSplitting returns a gate that divides commands. After the first step of each, a goroutine of the
// connection calls the parameter `between`. If that is nil, the gate divides no command.
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
