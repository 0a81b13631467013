package fault

import (
	"context"
	"errors"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/promise"
)

// pause stops the holder's whole process, its watchdog with it, for longer than
// its lease, and lets it run on. The holder stands inside COMMIT: nothing looks
// at a lease between there and the database, however short the way. A process
// that is stopped earlier may notice first; one that is stopped here cannot.
func pause() Fault {
	return Fault{Name: promise.Pause, Stock: stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		if err := s.hold(ctx, failpoint.Commit, s.Times.Wait); err != nil {
			return "", err
		}
		if err := s.A.freeze(); err != nil {
			return "", err
		}
		s.struck("SIGSTOP of the holder's process")
		answer, silent := s.unanswered(ctx)
		s.next(ctx, s.Times.reach())
		silent = silent && len(answer) == 0
		if err := errors.Join(s.release(), s.A.thaw()); err != nil {
			return "", err
		}
		answered := <-answer
		switch {
		case !silent:
			return "", missed("the holder's process answered between its SIGSTOP and its SIGCONT")
		case !answered:
			return "", missed("the holder's process did not answer after its SIGCONT")
		}
		return "the holder reported that it holds; its process answered a question that was asked while it was stopped only when it ran on", nil
	}}
}

// unanswered puts a question to the holder's process, which a stopped one answers
// when it runs on and not before. A signal takes a moment to arrive: a question
// that is answered is followed by another, for two seconds.
func (s *Scene) unanswered(ctx context.Context) (answer <-chan bool, silent bool) {
	patience := 2*s.Times.reach() + s.Times.Wait
	for deadline := time.Now().Add(2 * time.Second); !silent && time.Now().Before(deadline); {
		question := make(chan bool, 1)
		go func() { question <- s.A.alive(ctx, patience) }()
		for asked := time.Now(); len(question) == 0 && !silent; time.Sleep(time.Millisecond) {
			silent = time.Since(asked) > s.Times.Lease/8
		}
		answer = question
	}
	return answer, silent
}
