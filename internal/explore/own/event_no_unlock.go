package own

import (
	"context"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// noUnlock returns the moves in which a buyer's code takes a path without an unlock. Its process and the watchdog,
// which renews its lock, continue. The move is possible only right after the buyer's first command, since a later move
// would lead to the same results.
func (e events) noUnlock(context.Context) (all []move, _ error) {
	for _, b := range e.buyers {
		if _, unlocks := b.strategy.(interface{ Unlocks() }); unlocks && !b.over && !b.crashed && b.steps == 1 {
			m := ofBuyer(schedule.NoUnlock, b, "takes a path of its code that forgets the unlock", func(_ context.Context, b *buyer) error {
				b.forgetful.Store(true)
				e.knows.memories[b.id-1].hear("forgets the unlock")
				return nil
			})
			m.Global = e.x.spec.Shared // another buyer of the same process may wait for the lock
			all = append(all, m)
		}
	}
	return all, nil
}

// forgets reports whether the buyer's code skips the unlock. At the end of the schedule, the run calls unlock after
// all, so that no watchdog continues into the next schedule.
func (r *run) forgets(buyer int, unlock func()) bool {
	b, err := r.buyers.find(buyer)
	if err != nil || !b.forgetful.Load() || r.inbox.Free() {
		return false
	}
	b.unlock = unlock
	return true
}
