// setnx-expire: SETNX takes the key, a second command gives it a TTL, DEL frees
// it. Exhibit: the repair of setnx that is none.
//
// Guarantees:  one buyer of a product at a time, while nobody crashes between
//              the two commands and every section ends within the TTL.
// Breaks when: step 1, A sends SETNX; step 2, A dies before EXPIRE: as setnx,
//              for ever. Or the section outlives the TTL: B comes in, A's DEL
//              then frees B's lock, and C comes in as well.
// Cost:        three round trips to Redis.
// Source:      Redis documentation, SETNX, "Handling deadlocks"; SET has had NX
//              and EX in one command since Redis 2.6.12 for this reason.

package lockstrategy

import "context"

// NewSetNXExpire needs the database and one Redis.
func NewSetNXExpire(d Deps) *Locked {
	return newLocked(d, "setnx-expire", &polled{
		strategy: "setnx-expire", redis: d.Redis, poller: newPoller(d),
		take: func(ctx context.Context, key string) (string, bool, error) {
			taken, err := d.Redis.SetNX(ctx, key, "1", 0).Result()
			if err != nil || !taken {
				return "", false, err
			}
			return "", true, d.Redis.PExpire(ctx, key, d.Settings.LeaseTTL).Err()
		},
		free: deleteBlindly(d.Redis),
	})
}
