// setnx: SETNX takes the key, DEL frees it. Exhibit: the lock of 2010.
//
// Guarantees:  one buyer of a product at a time, until somebody crashes.
// Breaks when: the holder crashes: step 1, A takes the key; step 2, A dies; from
//              then on nobody can buy, until a person deletes the key. The same
//              when Redis hangs and the answer to the SETNX is lost.
// Cost:        two round trips to Redis.
// Source:      Redis documentation, SETNX, "Design pattern: Locking with SETNX"
//              (the page itself calls the pattern discouraged).

package lockstrategy

import "context"

// NewSetNX needs the database and one Redis.
func NewSetNX(d Deps) *Locked {
	return newLocked(d, "setnx", &polled{
		strategy: "setnx", redis: d.Redis, poller: newPoller(d),
		take: func(ctx context.Context, key string) (string, bool, error) {
			taken, err := d.Redis.SetNX(ctx, key, "1", 0).Result()
			return "", taken, err
		},
		free: deleteBlindly(d.Redis),
	})
}
