package strike

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/judge/promise"
)

// nth of those who wait hang up.
const nth = 3

// clientGone has a third of the buyers that wait for an answer close their connections, while
// one is stopped where it holds.
func clientGone() Fault {
	return Fault{
		Name: promise.ClientGone, About: "a third of the buyers that wait hang up while one of them is about to write",
		Strike: func(ctx context.Context, f *Field) (string, error) {
			release, err := f.hold(ctx)
			if err != nil {
				return "", err
			}
			defer release()
			left := f.HangUp(nth)
			if left == 0 {
				return "", missed("no buyer was waiting for an answer")
			}
			return fmt.Sprintf("%d buyers closed their connections, whose requests were out and had no answer, while a buyer of process 1 was stopped before its write", left), ctx.Err()
		},
	}
}
