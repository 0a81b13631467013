package fault

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// enough sales must have been acknowledged before the kill for a lost one to be
// found.
const enough = 20

// dbKill kills the database with SIGKILL while buyers of both shops buy, and
// starts it again with its data: what was acknowledged must be there.
func dbKill() Fault {
	return Fault{Name: lockstrategy.DBKill, Strikes: everybody, Stock: 160, Strike: func(ctx context.Context, s *Scene) (string, error) {
		var sold, refused atomic.Int64
		load, stop := context.WithCancel(ctx)
		defer stop()
		var buyers sync.WaitGroup
		for i, shop := range []*Shop{s.A, s.B, s.A, s.B} {
			buyers.Go(func() {
				for n := 0; load.Err() == nil; n++ {
					switch s.buy(ctx, shop, fmt.Sprintf("load%d-%04d", i, n)).Outcome {
					case purchase.Sold:
						sold.Add(1)
					case purchase.Failed, purchase.Unknown, purchase.Busy:
						refused.Add(1)
					}
					time.Sleep(5 * time.Millisecond) // a load, and no race to the last unit
				}
			})
		}
		for deadline := time.Now().Add(10 * time.Second); sold.Load() < enough && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		before := sold.Load()
		refused.Store(0)
		if err := s.Servers.db.Kill(); err != nil {
			return "", err
		}
		s.struck("SIGKILL of the database")
		for deadline := time.Now().Add(3 * time.Second); refused.Load() == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		failed := refused.Load()
		if err := s.Servers.db.Start(); err != nil {
			return "", err
		}
		s.struck("the database is back with its data")
		stop()
		buyers.Wait()
		if before < enough || failed == 0 {
			return "", missed("%d sales were acknowledged before the kill and %d buyers met it", before, failed)
		}
		return fmt.Sprintf("%d sales were acknowledged before the kill; the first of %d buyers met a database that was gone", before, refused.Load()), nil
	}}
}
