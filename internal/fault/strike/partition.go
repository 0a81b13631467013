package strike

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/promise"
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
			links := f.Processes.Links()[struck]
			defer links.Heal(context.WithoutCancel(ctx))
			proof, err := fault.Part(links, f.Lease/4, func() {})
			if err != nil {
				return "", err
			}
			parted := time.Now()
			sold := f.meanwhile(ctx, math.MaxInt, f.outlast()) // until the lease has ended, whoever sells
			if sold < few {
				sold += f.meanwhile(ctx, few-sold, fault.Times{Wait: f.Wait, Lease: f.Lease}.Reach())
			}
			lasted := time.Since(parted).Round(time.Millisecond)
			release()
			f.awaitReturn(ctx) // its own release has failed, too
			return fmt.Sprintf("a buyer of process 1 was stopped before its write; %s; %d units were sold in the %s before it went on, and its lease is %s", proof, sold, lasted, f.Lease), ctx.Err()
		},
	}
}
