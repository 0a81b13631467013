package own

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// resting waits until every buyer waits at its gate (which holds its command), is blocked, or is done.
type resting struct {
	r             *run
	severalAtOnce bool // a buyer may have several unanswered commands
	messages      int  // number of Pub/Sub messages before this step; another message may wake a waiting buyer
	unblocks      bool // a command of this step may end another buyer's wait in the database
}

// looksAtOnce is how many times await asks the server before its first sleep, if the commands probably wait. One
// question is not enough: it can reach the server before a statement that was sent earlier.
const looksAtOnce = 3

// While the buyers run, the scheduler sleeps, first for firstNap. Each further sleep is twice as long, up to
// longestNap. A buyer's report ends a sleep early. So a long sleep only delays the moment at which the scheduler
// notices that a buyer waits.
const (
	firstNap   = 50 * time.Microsecond
	longestNap = 5 * time.Millisecond
)

// napsOfACommand is the number of sleeps before await asks the server, if the commands probably do not wait. Most
// commands end during these sleeps, and a question costs the server as much as a command.
const napsOfACommand = 5

func (s *resting) await(ctx context.Context) error {
	s.begin()
	deadline, silence := time.Now().Add(schedule.HangTimeout), s.r.x.endings.patience(maxSilence)
	for tries := 0; ; tries++ {
		if err := s.account().drain(); err != nil {
			return err
		}
		if s.standing() {
			return nil
		}
		likely := s.mayWait()
		if likely {
			runtime.Gosched() // lets the buyer's goroutine send its command
		}
		if likely || tries >= s.patience() { // a buyer may be waiting without having reported it
			if err := s.look(ctx); err != nil {
				return err
			}
			if s.standing() {
				return nil
			}
			if likely && tries+1 < looksAtOnce {
				continue
			}
		}
		s.r.x.nap.begin(min(firstNap<<min(tries, 10), longestNap))
		select {
		case e := <-s.r.inbox.reports:
			if err := s.account().note(e); err != nil {
				return err
			}
			tries = -1
		case <-s.r.x.nap.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch {
		case s.r.buyers.fly():
			silence = s.r.x.endings.patience(maxSilence)
		case silence.isOver():
			return fmt.Errorf("%w: %w", errSilent, s.r.buyers.moving())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %w", schedule.ErrHarness, s.r.buyers.moving())
		}
	}
}

// begin forgets the facts that the next step may change.
func (s *resting) begin() {
	messages := s.r.x.gates.PubSub.Count()
	for _, b := range s.r.buyers {
		b.blocked = b.blocked && !s.unblocks
		b.inside = b.inside && s.messages == messages && !s.severalAtOnce
	}
	s.unblocks, s.messages = false, messages
}

// patience returns the number of sleeps before the server is asked which commands wait.
func (s *resting) patience() int {
	if slices.ContainsFunc(s.r.buyers, func(b *buyer) bool { return len(b.flying) > 0 && !b.blocked }) {
		return napsOfACommand
	}
	return 1
}

// mayWait reports whether each unanswered command may wait for a lock of another buyer. Then await asks the server at
// once which commands wait.
func (s *resting) mayWait() bool {
	flying := 0
	for _, b := range s.r.buyers {
		held := slices.ContainsFunc(s.r.buyers, func(other *buyer) bool { return other != b && (other.locks || other.named) })
		for _, o := range b.flying {
			flying++
			if !held || o.Server != gate.SQL || o.Effect != schedule.Writes || o.Controls {
				return false
			}
		}
	}
	return flying > 0 && s.r.x.database.Blocks()
}

// standing reports whether every buyer waits or is done. If a buyer can have several unanswered commands, standing also
// asks package standstill. Then it checks again whether a command has reached a gate.
func (s *resting) standing() bool {
	switch {
	case !s.settled():
		return false
	case !s.severalAtOnce:
		return true
	case !s.still() || !s.settled():
		return false
	}
	s.severalAtOnce = s.r.x.severalAtOnce || s.background()
	return true
}

// background reports whether a buyer may still have a second unanswered command. That command is a renewal, the end of
// a transaction whose context has ended, or part of the clean-up after the buyer hung up.
func (s *resting) background() bool {
	for _, b := range s.r.buyers {
		if b.gone {
			return true
		}
		for _, o := range append(b.gate[:len(b.gate):len(b.gate)], b.flying...) {
			if o.Background || o.GivenUp() {
				return true
			}
		}
	}
	return false
}

// settled reports whether every buyer waits or is done, according to the reports of the gates.
func (s *resting) settled() bool {
	for _, b := range s.r.buyers {
		switch {
		case len(b.flying) > 0 && !b.blocked, slices.ContainsFunc(b.flying, (*gate.Op).GivenUp):
			return false
		case !b.over && len(b.gate) == 0 && len(b.flying) == 0 && !b.inside:
			return false
		}
	}
	return true
}

// still reports whether no strategy can continue by itself and no message is in transit. It compares the messages
// before and after it inspects the goroutines, since a message that arrives in between may wake a goroutine.
func (s *resting) still() bool {
	x := s.r.x
	before, moment := x.gates.PubSub.Quiet()
	if !before || !x.rest.AtRest() {
		return false
	}
	after, later := x.gates.PubSub.Quiet()
	return after && later == moment && len(s.r.inbox.reports) == 0
}

func (s *resting) look(ctx context.Context) error {
	x := s.r.x
	silent, flying, named := false, false, false
	for _, b := range s.r.buyers {
		flying = flying || len(b.flying) > 0
		named = named || slices.ContainsFunc(b.flying, func(o *gate.Op) bool { return o.Asks })
		silent = silent || !b.over && len(b.flying) == 0 && len(b.gate) == 0
	}
	if flying {
		waiting, err := x.database.Waiting(ctx, named)
		if err != nil {
			return err
		}
		s.block(waiting)
	}
	if silent && s.still() {
		for _, b := range s.r.buyers {
			b.inside = !b.over && len(b.gate) == 0 && len(b.flying) == 0
		}
	}
	return nil
}

// block records that all buyers with an unanswered command wait in the database. If even one of these commands does not
// wait, block records nothing, because that command may be about to unblock another.
func (s *resting) block(waiting map[int64]bool) {
	if s.r.named.owed || len(s.r.inbox.reports) > 0 {
		return
	}
	for _, b := range s.r.buyers {
		for _, o := range b.flying {
			if o.Conn() == nil || !waiting[o.Conn().ID()] || o.TimedOut() {
				return
			}
		}
	}
	for _, b := range s.r.buyers {
		b.blocked = len(b.flying) > 0
	}
}

func (s *resting) account() account { return account{s.r} }
