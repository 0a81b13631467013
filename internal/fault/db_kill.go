package fault

import (
	"context"
	"fmt"
	"net"
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
	return Fault{Name: lockstrategy.DBKill, Stock: 160, Strike: func(ctx context.Context, s *Scene) (string, error) {
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
		for deadline := time.Now().Add(10 * time.Second); sold.Load() < enough && ctx.Err() == nil && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		before := sold.Load()
		refused.Store(0)
		if err := s.Servers.db.Kill(); err != nil {
			return "", err
		}
		s.struck("SIGKILL of the database")
		// Buyers meet a database that is gone; a strategy may let them wait for it.
		for deadline := time.Now().Add(500 * time.Millisecond); refused.Load() < 4 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		gone := s.Servers.databaseGone()
		if err := s.Servers.db.Start(); err != nil {
			return "", err
		}
		s.struck("the database is back with its data")
		stop()
		buyers.Wait()
		if before < enough || !gone {
			return "", missed("%d sales were acknowledged before the kill, and the database was gone: %t", before, gone)
		}
		return fmt.Sprintf("%d sales were acknowledged before the kill; nobody listened on the database's port then, and %d buyers were told no", before, refused.Load()), nil
	}}
}

// databaseGone tells whether nobody listens on the database's port.
func (s *Servers) databaseGone() bool {
	conn, err := net.DialTimeout("tcp", s.db.Addr, time.Second)
	if err != nil {
		return true
	}
	_ = conn.Close()
	return false
}
