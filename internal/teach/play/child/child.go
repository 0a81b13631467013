// Package child runs one game in a separate process, controlled by JSON on its standard input. A game uses
// the explorer, which inspects all goroutines of its process. So a shop that serves many games needs a
// process for each.
//
//	parent -- Request --> stdin  -- Serve --> play.Game
//	parent <-- Answer --- stdout <-----------
//
// Each request has one answer, in order. During a search, the child first sends answers that contain only
// Progress. The child ends at the end of its input, so it does not outlive its parent.
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

// An Op is an operation of a child.
type Op string

const (
	Open    Op = "open" // must be the first operation
	Move    Op = "move"
	Undo    Op = "undo"
	Restart Op = "restart"
	Hint    Op = "hint"
	Prove   Op = "prove"
	Stop    Op = "stop" // ends the search under way; has no answer of its own
)

// A Request is one line of the child's input.
type Request struct {
	Op     Op              `json:"op"`
	Config *play.Config    `json:"config,omitempty"` // for Open
	Token  string          `json:"token,omitempty"`  // for Move
	Goal   verdict.Verdict `json:"goal,omitempty"`   // for Hint
	Effort play.Effort     `json:"effort,omitzero"`  // for Hint and Prove
}

// An Answer is one line of the child's output.
type Answer struct {
	Position *play.Position `json:"position,omitempty"`
	Way      *play.Way      `json:"way,omitempty"`   // for Hint
	Proof    *play.Proof    `json:"proof,omitempty"` // for Prove
	Progress *Progress      `json:"progress,omitempty"`
	Error    string         `json:"error,omitempty"` // one line; the request has changed nothing
	Kind     Kind           `json:"kind,omitempty"`  // kind of Error
}

// Progress is the progress of a search.
type Progress struct {
	Runs       int `json:"runs"`
	Violations int `json:"violations"`
}

// A Kind classifies errors by their cause.
type Kind string

const (
	Bad     Kind = "bad"     // a bad request
	Missing Kind = "missing" // the embedded engine does not support the strategy
	Failed  Kind = "failed"  // a failure of the explorer or of the machine
)

// progressEvery is the time between two answers with Progress.
const progressEvery = 250 * time.Millisecond

// Serve answers the requests in `in` until it or ctx ends.
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
				return nil // there is no reader any more
			}
		}
	}
}

// served is a running child.
type served struct {
	ctx    context.Context
	cancel context.CancelFunc
	out    *json.Encoder
	asked  chan asked
	game   *play.Game
}

// asked is a request, and the context of its search, which Stop ends.
type asked struct {
	Request
	ctx    context.Context
	cancel context.CancelFunc
}

// read passes the requests on to Serve. It ends the child at the end of its input, and at an invalid line.
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

// errOrder means that a request is unknown or came at the wrong time: Open must be the first one, and must not
// be repeated.
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

// progress returns a function that reports the progress of a search from time to time.
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
