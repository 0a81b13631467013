package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/testbed"
)

// partition separates the holder's shop from its lock servers, but not from the
// database, while the holder is between its read and its write: its lease expires
// where the holder cannot see it.
func partition() Fault {
	return Fault{
		Name: "partition", About: "between the holder's shop and its lock servers", Needs: lockServers(), Stock: stock,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			if err := t.hold(ctx, failpoint.Read, t.Times.Wait); err != nil {
				return "", err
			}
			parted := t.A.Links
			t.afterwards(func(ctx context.Context) error {
				parted.Heal(ctx)
				settle(ctx, t.Times.Lease)
				return nil
			})
			proof, err := Part(parted, t.Times.Lease/4, func() { t.struck("nothing passes between the holder's shop and its lock servers") })
			if err != nil {
				return "", err
			}
			sendNext(ctx, t, t.Times.Reach())
			err = t.release()
			t.buyers.wait() // the holder's own release has failed, too
			return "the holder reported that it has read; " + proof, err
		},
	}
}

// Part lets nothing through the links until they are healed, calls struck, and proves it: no
// server answers within the timeout, and all did before.
func Part(links testbed.Links, timeout time.Duration, struck func()) (proof string, _ error) {
	before := links.Answering(5 * time.Second)
	if err := links.Silence(); err != nil {
		return "", err
	}
	struck()
	if after := links.Answering(timeout); before < len(links) || after > 0 {
		return "", missed("%d of %d lock servers answered before the partition and %d through it", before, len(links), after)
	}
	return fmt.Sprintf("its way to %d lock servers let no question through from then on, and had before", len(links)), nil
}
