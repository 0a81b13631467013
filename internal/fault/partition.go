package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/testbed"
)

// partition separates the shop of the lock holder from its lock servers, but not from the database. The holder
// is stopped between its read and its write, so it does not notice that its lease expires.
func partition() Fault {
	return Fault{
		Name: "partition", About: "the holder's shop loses its connections to the lock servers", Needs: lockServers(), Stock: stock,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			if err := holdFor(ctx, t, failpoint.Read, t.Times.Wait); err != nil {
				return "", err
			}
			// After the partition, a client may avoid the servers that did not answer for a while.
			t.afterwards(func(ctx context.Context) error { pauseFor(ctx, t.Times.Lease); return nil })
			proof, err := part(t, t.A.Links, t.Times.Lease/4)
			if err != nil {
				return "", err
			}
			t.others(ctx, t.Times.outlast(), t.Times.Reach())
			if err := t.release(); err != nil {
				return "", err
			}
			t.buyers.wait() // now the holder has tried to release its lock, and failed
			return "the holder reported that it has read; " + proof, nil
		},
	}
}

// part closes the links (the proxies to the lock servers). It proves the partition: all servers answered
// before, and no server answers through the links within the timeout.
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

// parted returns a proof if all servers answered before the partition and none through the cut links.
func parted(all, before, through int) (proof string, _ error) {
	if before < all || through > 0 {
		return "", missed("%d of %d lock servers answered before the partition and %d through it", before, all, through)
	}
	return fmt.Sprintf("its way to %d lock servers let no question through from then on, and had before", all), nil
}
