// setnx-ttl: SET NX PX takes the key with its TTL in one command, DEL frees it.
// Exhibit: a lock without an owner.
//
// Guarantees:  one buyer of a product at a time, while every section ends within
//              the TTL.
// Breaks when: step 1, A takes the key; step 2, A's section outlives the TTL;
//              step 3, B takes the key; step 4, A is done and deletes it: B's;
//              step 5, C takes the key beside B. One slow buyer breaks the lock
//              for all that follow.
// Cost:        two round trips to Redis.
// Source:      Redis documentation, SET, "Patterns" (why the value should be a
//              token that the release compares).

package lockstrategy

import "context"

// NewSetNXTTL needs the database and one Redis.
func NewSetNXTTL(d Deps) *Locked {
	return newLocked(d, "setnx-ttl", &polled{
		strategy: "setnx-ttl", redis: d.Redis, poller: newPoller(d),
		take: func(ctx context.Context, key string) (string, bool, error) {
			taken, err := d.Redis.SetNX(ctx, key, "1", d.Settings.LeaseTTL).Result()
			return "", taken, err
		},
		free: deleteBlindly(d.Redis),
	})
}
