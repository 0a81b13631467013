package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/testbed"
)

// partition separates the holder's shop from its lock servers, but not from the database. The
// holder is between its read and its write, so its lease expires unnoticed.
func partition() Fault {
	return Fault{
		Name: "partition", About: "the holder's shop loses its connections to the lock servers", Needs: lockServers(), Stock: stock,
		AboutRush: "nothing passes between a shop process and its lock servers while a buyer holds in it", Lacks: lacksLockServers, TwoProcesses: true,
		Inject: func(ctx context.Context, f Field) (string, error) {
			s := f.setting()
			if _, err := f.hold(ctx, failpoint.Read); err != nil {
				return "", err
			}
			f.afterwards(func(ctx context.Context) error { pauseFor(ctx, s.Avoided); return nil })
			links := f.lockLinks()
			proof, err := part(f, links, s.Lease/4)
			if err != nil {
				return "", err
			}
			parted := time.Now()
			sold := f.others(ctx, s.outlast(), s.Reach())
			lasted := time.Since(parted).Round(time.Millisecond)
			if err := f.release(); err != nil {
				return "", err
			}
			f.awaitAnswer(ctx) // the holder's own release has failed by then, too
			if s.InRush {
				return fmt.Sprintf("a buyer of process 1 was stopped before its write; %s; %d units were sold in the %s before it went on, and its lease is %s", proof, sold, lasted, s.Lease), nil
			}
			return "the holder reported that it has read; " + proof, nil
		},
	}
}

// part closes the links and proves it: no server answers within the timeout, although all of them
// answered before.
func part(f Field, links testbed.Links, timeout time.Duration) (proof string, _ error) {
	before := links.Answering(5 * time.Second)
	heal(f, links)
	if err := links.Silence(); err != nil {
		return "", err
	}
	f.injected("nothing passes between the holder's shop and its lock servers")
	if after := links.Answering(timeout); before < len(links) || after > 0 {
		return "", missed("%d of %d lock servers answered before the partition and %d through it", before, len(links), after)
	}
	return fmt.Sprintf("its way to %d lock servers let no question through from then on, and had before", len(links)), nil
}
