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
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			if err := holdFor(ctx, t, failpoint.Read, t.Times.Wait); err != nil {
				return "", err
			}
			// After the partition, a client may avoid the silent servers for a while.
			t.afterwards(func(ctx context.Context) error { pauseFor(ctx, t.Times.Lease); return nil })
			proof, err := part(t, t.A.Links, t.Times.Lease/4)
			if err != nil {
				return "", err
			}
			t.others(ctx, t.Times.outlast(), t.Times.Reach())
			if err := t.release(); err != nil {
				return "", err
			}
			t.buyers.wait() // the holder's own release has failed by then, too
			return "the holder reported that it has read; " + proof, nil
		},
	}
}

// part closes the links and proves it: no server answers within the timeout, although all of them
// answered before.
func part(t *Testbed, links testbed.Links, timeout time.Duration) (proof string, _ error) {
	before := links.Answering(5 * time.Second)
	heal(t, links)
	if err := links.Silence(); err != nil {
		return "", err
	}
	t.injected("nothing passes between the holder's shop and its lock servers")
	return parted(len(links), before, links.Answering(timeout))
}

// heal opens the links again at the end of the injection.
func heal(t *Testbed, links testbed.Links) {
	t.afterwards(func(ctx context.Context) error { links.Heal(ctx); return nil })
}

// parted proves a partition by the numbers of servers that answered before it and through the cut links.
func parted(all, before, through int) (proof string, _ error) {
	if before < all || through > 0 {
		return "", missed("%d of %d lock servers answered before the partition and %d through it", before, all, through)
	}
	return fmt.Sprintf("its way to %d lock servers let no question through from then on, and had before", all), nil
}
