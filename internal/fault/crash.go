package fault

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
)

// crash kills the holder's process with SIGKILL when its COMMIT is due: its lock is
// taken and its transaction open. A lock without a TTL stays taken for ever.
func crash() Fault {
	return Fault{
		Name: "crash", About: "SIGKILL of the holder between acquire and write", Stock: stock,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			if err := t.hold(ctx, failpoint.Commit, t.Times.Wait); err != nil {
				return "", err
			}
			// Nothing is committed: an answer that comes now is an acknowledgement too soon.
			t.seen(ctx, 100*time.Millisecond, holder, history.Answered)
			if err := t.A.Kill(); err != nil {
				return "", err
			}
			t.struck("SIGKILL of the holder's process")
			if t.A.Answers(ctx, 100*time.Millisecond) {
				return "", missed("the holder's process answers after its SIGKILL")
			}
			sendNext(ctx, t, t.Times.Reach())
			return "the holder reported that it holds; its process was killed and answers no more", t.restart(ctx, &t.A)
		},
	}
}
