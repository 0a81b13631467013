package strike

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/promise"
)

// partition separates a process from its lock servers, but not from the database, while one
// of its buyers is between its read and its write: its lease expires where it cannot see it.
func partition() Fault {
	return Fault{
		Name: promise.Partition, About: "nothing passes between a shop process and its lock servers while a buyer holds in it", Cannot: withoutLockServers, Several: true,
		Strike: func(ctx context.Context, f *Field) (string, error) {
			release, err := f.holdAt(ctx, failpoint.Read)
			if err != nil {
				return "", err
			}
			defer release()
			lines := f.Processes.Lines()[struck]
			defer lines.Heal(context.WithoutCancel(ctx))
			proof, err := lines.Part(f.Lease / 4)
			if err != nil {
				return "", err
			}
			sold := f.meanwhile(ctx, few, fault.Times{Wait: f.Wait, Lease: f.Lease}.Reach())
			release()
			f.awaitReturn(ctx) // its own release has failed, too
			return fmt.Sprintf("a buyer of process 1 was stopped before its write; %s; %d units were sold before it went on", proof, sold), ctx.Err()
		},
	}
}
