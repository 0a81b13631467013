package fault

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/history"
	"github.com/oversell/oversell/internal/promise"
)

// crash kills the holder's process with SIGKILL when its COMMIT is due: its lock
// is taken, its transaction open. What has no TTL is locked for ever.
func crash() Fault {
	return Fault{Name: promise.Crash, Stock: stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		if err := s.hold(ctx, failpoint.Commit, s.Times.Wait); err != nil {
			return "", err
		}
		// Nothing is committed: an answer that comes now is an acknowledgement too soon.
		s.seen(ctx, 100*time.Millisecond, holder, history.Answered)
		if err := s.A.kill(); err != nil {
			return "", err
		}
		s.struck("SIGKILL of the holder's process")
		if s.A.alive(ctx, 100*time.Millisecond) {
			return "", missed("the holder's process answers after its SIGKILL")
		}
		s.next(ctx, s.Times.reach())
		return "the holder reported that it holds; its process was killed and answers no more", s.restartA(ctx)
	}}
}
