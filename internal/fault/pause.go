package fault

import (
	"context"
	"errors"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
)

// pause stops the holder's whole process, its watchdog included, for longer than
// its lease, and lets it run on. The holder stands inside its COMMIT: nothing checks
// a lease between there and the database. A process that is stopped earlier may
// notice the loss first; one that is stopped here cannot.
func pause() Fault {
	return Fault{
		Name: "pause", About: "SIGSTOP of the holder for longer than its lease, then SIGCONT", Stock: stock,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			if err := t.hold(ctx, failpoint.Commit, t.Times.Wait); err != nil {
				return "", err
			}
			if err := t.A.Freeze(); err != nil {
				return "", err
			}
			t.struck("SIGSTOP of the holder's process")
			answer, silent := unanswered(ctx, t.A, t.Times)
			sendNext(ctx, t, t.Times.Reach())
			silent = silent && len(answer) == 0
			if err := errors.Join(t.release(), t.A.Thaw()); err != nil {
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
		},
	}
}

// unanswered asks the shop's process a question. A stopped process answers it when
// it runs on, and not before. A signal takes a moment to arrive, so a question that
// is answered is followed by another, for two seconds.
func unanswered(ctx context.Context, shop *Shop, times Times) (answer <-chan bool, silent bool) {
	timeout := 2*times.Reach() + times.Wait
	for deadline := time.Now().Add(2 * time.Second); !silent && time.Now().Before(deadline); {
		question := make(chan bool, 1)
		go func() { question <- shop.Answers(ctx, timeout) }()
		for asked := time.Now(); len(question) == 0 && !silent; time.Sleep(time.Millisecond) {
			silent = time.Since(asked) > times.Lease/8
		}
		answer = question
	}
	return answer, silent
}
