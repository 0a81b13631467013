// Package child is one game in a process of its own, told by JSON on its standard input what to
// do. The explorer looks at all goroutines of its process, so a shop that serves many games has
// each of them in one.
//
//	parent -- Request --> stdin  -- Serve --> play.Game
//	parent <-- Answer --- stdout <-----------
//
// Each request has one answer, in order; while a search is under way answers that have only
// Progress come before it. The child ends at the end of its input, so it outlives no parent.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

// An Op is what a child is asked to do.
type Op string

// The ops.
const (
	Open    Op = "open" // the first one
	Move    Op = "move"
	Undo    Op = "undo"
	Restart Op = "restart"
	Hint    Op = "hint"
	Prove   Op = "prove"
	Stop    Op = "stop" // ends the search that is under way, and has no answer of its own
)

// A Request is one line of the child's input.
type Request struct {
	Op     Op              `json:"op"`
	Config *play.Config    `json:"config,omitempty"` // of Open
	Token  string          `json:"token,omitempty"`  // of Move
	Goal   verdict.Verdict `json:"goal,omitempty"`   // of Hint
	Effort play.Effort     `json:"effort,omitzero"`  // of Hint and Prove
}

// An Answer is one line of its output.
type Answer struct {
	Position *play.Position `json:"position,omitempty"`
	Way      *play.Way      `json:"way,omitempty"`   // of Hint
	Proof    *play.Proof    `json:"proof,omitempty"` // of Prove
	Progress *Progress      `json:"progress,omitempty"`
	Error    string         `json:"error,omitempty"` // one line; nothing has changed
	Kind     Kind           `json:"kind,omitempty"`  // of Error
}

// Progress is how far a search is.
type Progress struct {
	Runs       int `json:"runs"`
	Violations int `json:"violations"`
}

// A Kind is whose fault an error is.
type Kind string

// The kinds.
const (
	Bad     Kind = "bad"     // of who asked
	Missing Kind = "missing" // the embedded engine lacks what the strategy needs
	Failed  Kind = "failed"  // of the explorer, or of the machine
)

// progressEvery is between two answers with Progress.
const progressEvery = 250 * time.Millisecond

// Serve answers until in ends or ctx does.
func Serve(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	s := &served{out: json.NewEncoder(out), asked: make(chan asked)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	go s.read(in)
	defer func() {
		if s.game != nil {
			err = errors.Join(err, s.game.Close())
		}
	}()
	for {
		select {
		case <-s.ctx.Done():
			return nil
		case a := <-s.asked:
			if err := s.out.Encode(s.answer(a)); err != nil {
				return nil // nobody listens any more
			}
		}
	}
}

// served is a child at work.
type served struct {
	ctx    context.Context
	cancel context.CancelFunc
	out    *json.Encoder
	asked  chan asked
	game   *play.Game
}

// asked is a request, and what Stop ends of it.
type asked struct {
	Request
	ctx    context.Context
	cancel context.CancelFunc
}

// read hands the requests on. At their end, and at what is none, the child ends.
func (s *served) read(in io.Reader) {
	defer s.cancel()
	last := asked{cancel: func() {}}
	for requests := json.NewDecoder(in); ; {
		var r Request
		if requests.Decode(&r) != nil {
			return
		}
		if r.Op == Stop {
			last.cancel()
			continue
		}
		last = asked{Request: r}
		last.ctx, last.cancel = context.WithCancel(s.ctx)
		select {
		case s.asked <- last:
		case <-s.ctx.Done():
			return
		}
	}
}

// answer does what it is asked to.
func (s *served) answer(r asked) Answer {
	defer r.cancel()
	a, err := s.do(r)
	if err != nil {
		a = Answer{Error: err.Error(), Kind: kindOf(err)}
	}
	if s.game != nil {
		p := s.game.Position()
		a.Position = &p
	}
	return a
}

func kindOf(err error) Kind {
	switch {
	case errors.Is(err, play.ErrMissing):
		return Missing
	case errors.Is(err, play.ErrBadMove), errors.Is(err, play.ErrBadConfig), errors.Is(err, errOrder):
		return Bad
	}
	return Failed
}

// errOrder is of a parent that asks what cannot be asked now.
var errOrder = errors.New("there is no such request; open comes first, and once")

func (s *served) do(r asked) (a Answer, err error) {
	if (s.game == nil) != (r.Op == Open) || r.Op == Open && r.Config == nil {
		return a, errOrder
	}
	switch r.Op {
	case Open:
		s.game, err = play.Open(s.ctx, *r.Config)
	case Move:
		_, err = s.game.Move(r.Token)
	case Undo:
		_, err = s.game.Undo()
	case Restart:
		_, err = s.game.Restart()
	case Hint:
		a.Way = &play.Way{}
		*a.Way, err = s.game.Hint(r.ctx, r.Goal, r.Effort)
	case Prove:
		a.Proof = &play.Proof{}
		*a.Proof, err = s.game.Prove(r.ctx, r.Effort, s.progress())
	default:
		err = errOrder
	}
	return a, err
}

// progress tells from time to time how far a search is.
func (s *served) progress() func(runs, violations int) {
	last := time.Now()
	return func(runs, violations int) {
		if time.Since(last) < progressEvery {
			return
		}
		last = time.Now()
		if s.out.Encode(Answer{Progress: &Progress{runs, violations}}) != nil {
			s.cancel()
		}
	}
}
