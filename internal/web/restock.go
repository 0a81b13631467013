package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/teach/room"
)

// restock puts units of a product on sale while this process has no buy of the product in flight.
func (s *Shop) restock(ctx context.Context, name string, amount int64) error {
	if err := s.down(ctx); err != nil { // checked before buyers have to wait
		return fmt.Errorf("nothing was restocked: %w", err)
	}
	return s.counter.Closed(ctx, name, func() error {
		err := purchase.Restock(ctx, s.engine.Admin, s.locks, name, amount)
		if err == nil {
			err = purchase.DatabaseError(ctx, "restock", s.engine.Cluster.Settle(ctx))
		}
		if err == nil {
			s.watch.publish(history.Event{Kind: history.Restocked, At: time.Now(), Product: name, Amount: amount})
			s.room.Restocked(name, amount)
		}
		return err
	})
}

// downFor calls the method `down` for the servers that a strategy needs.
func (s *Shop) downFor(ctx context.Context, strategy string) error {
	servers := []string{"database"}
	entry, _ := lockstrategy.ByName(strategy)
	for _, need := range entry.Needs {
		servers = append(servers, string(need))
	}
	return s.down(ctx, servers...)
}

// down returns an error if one of the given servers does not answer; without names, it asks all servers.
// Concurrent callers share one request. It returns nil if this process got too little processor time to
// notice an answer.
func (s *Shop) down(ctx context.Context, servers ...string) error {
	_, err, _ := s.asking.Do(fmt.Sprint(servers), func() (any, error) {
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*s.silence)
		defer cancel()
		ctx, stop := pulse.WithTimeout(bound, s.silence)
		defer stop()
		down := s.engine.Check(ctx, servers...)
		for _, server := range slices.Sorted(maps.Keys(down)) {
			if bound.Err() == nil {
				return nil, &purchase.Unavailable{Server: server, Err: down[server]}
			}
		}
		return nil, nil
	})
	return err
}

// newRoom returns the classroom, whose buyers buy from this shop. It offers each strategy that the shop can
// run.
func (s *Shop) newRoom() *room.Room {
	config := room.Config{Sell: s.counter.Sell, CheckProduct: s.isProduct, Restock: s.restock}
	for _, e := range lockstrategy.All() {
		if _, here := s.counter.Strategies[e.Name]; here {
			config.Strategies = append(config.Strategies, room.Strategy{Name: e.Name, ReceiptShowsUnit: soldTells(e.Name)})
		}
	}
	return room.New(config)
}

func (s *Shop) isProduct(ctx context.Context, name string) error {
	_, err := product.ByName(s.engine.DB.WithContext(ctx), name)
	if errors.Is(err, product.ErrNotFound) {
		return fmt.Errorf("%w as %q; GET /product lists them, and PUT /product/NAME creates one", product.ErrNotFound, name)
	}
	return purchase.DatabaseError(ctx, "put on sale", err)
}
