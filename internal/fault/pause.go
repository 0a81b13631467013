package fault

import (
	"context"
	"errors"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// pause stops the holder's whole process, its watchdog with it, for longer than
// its lease, and lets it run on. The holder stands inside COMMIT: nothing looks
// at a lease between there and the database, however short the way. A process
// that is stopped earlier may notice first; one that is stopped here cannot.
func pause() Fault {
	return Fault{Name: lockstrategy.Pause, Stock: stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		if err := s.hold(ctx, failpoint.Commit, s.Times.Wait); err != nil {
			return "", err
		}
		if err := s.A.freeze(); err != nil {
			return "", err
		}
		s.struck("SIGSTOP of the holder's process")
		stopped := false
		for deadline := time.Now().Add(2 * time.Second); !stopped && time.Now().Before(deadline); { // a signal takes a moment
			stopped = !s.A.alive(ctx, 100*time.Millisecond)
		}
		s.next(ctx, s.Times.reach())
		if err := errors.Join(s.release(), s.A.thaw()); err != nil {
			return "", err
		}
		if !stopped {
			return "", missed("the holder's process answers after its SIGSTOP")
		}
		if !s.A.alive(ctx, 5*time.Second) {
			return "", missed("the holder's process does not answer after its SIGCONT")
		}
		return "the holder reported that it holds; its process did not answer while stopped, and did again", nil
	}}
}
