package main

import (
	"context"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/purchase"
)

// revocable is a lock in etcd whose section ends when the lease is revoked, unless it has the bug.
type revocable struct {
	lockstrategy.Deps
	name string
	deaf bool // the section does not notice the loss of the lease
}

func (s *revocable) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Settings.Wait, purchase.ErrBusy)
	defer cancel()
	kept := context.WithoutCancel(ctx)
	grant, err := s.Etcd.Grant(kept, int64(s.Settings.LeaseTTL/time.Second))
	if err != nil {
		return purchase.Receipt{}, deps.Failed(deps.Etcd, err)
	}
	session, err := concurrency.NewSession(s.Etcd, concurrency.WithLease(grant.ID))
	if err != nil {
		return purchase.Receipt{}, deps.Failed(deps.Etcd, err)
	}
	defer func() {
		session.Orphan()
		_, _ = s.Etcd.Revoke(kept, clientv3.LeaseID(grant.ID)) // it may have ended already
	}()
	if err := concurrency.NewMutex(session, "planted/"+s.name+"/"+o.Product).Lock(ctx); err != nil {
		if ctx.Err() != nil {
			return purchase.Receipt{}, context.Cause(ctx)
		}
		return purchase.Receipt{}, deps.Failed(deps.Etcd, err)
	}
	event := lockstrategy.Event{
		Kind: lockstrategy.Acquired, At: time.Now(), Strategy: s.name, Product: o.Product, Purchaser: o.Purchaser, Token: strconv.FormatInt(int64(grant.ID), 16),
	}
	s.Observe(ctx, event)
	defer func() {
		event.Kind, event.At = lockstrategy.Released, time.Now()
		s.Observe(kept, event)
	}()
	section, end := context.WithCancelCause(ctx)
	defer end(context.Canceled)
	if !s.deaf { // otherwise: the bug
		go func() {
			select {
			case <-session.Done():
				end(purchase.ErrLockLost)
			case <-section.Done():
			}
		}()
	}
	return purchase.Section{DB: s.DB, Strategy: s.name, Now: time.Now}.Sell(section, o, 0)
}
