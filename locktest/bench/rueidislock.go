package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/oversell/oversell/locktest"
)

// Options of rueidislock that have their own row.
var (
	rueidislockDefault = rueidislock.LockerOption{}                    // three keys, two of them needed; TTL 5 s
	rueidislockSETPX   = rueidislock.LockerOption{FallbackSETPX: true} // the TTL by the server's clock, not by the client's
	rueidislockOneKey  = rueidislock.LockerOption{KeyMajority: 1}      // one key, as in the other libraries
)

// rueidislockKind is rueidislock with options. The library renews at half of the TTL. It gives the holder a
// context that ends when the lock is lost.
func rueidislockKind(name string, option rueidislock.LockerOption) kind {
	return kind{
		name: name, renews: true, renewEvery: 0.5, signalsLoss: true,
		keys: func(lock string) []string {
			keys := []string{"rueidislock:0:" + lock, "rueidislock:1:" + lock, "rueidislock:2:" + lock}
			if option.KeyMajority == 1 {
				return keys[:1]
			}
			return keys
		},
		connect: func(addr string, ttl time.Duration) (locktest.Client, error) {
			option := option
			option.KeyValidity = ttl
			option.ClientOption = rueidis.ClientOption{InitAddress: []string{addr}}
			locker, err := rueidislock.NewLocker(option)
			if err != nil {
				return nil, err
			}
			return rueidislockClient{locker}, nil
		},
	}
}

type rueidislockClient struct{ locker rueidislock.Locker }

func (c rueidislockClient) Lock(ctx context.Context, name string) (locktest.Lease, error) {
	held, unlock, err := c.locker.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return rueidislockLease{ctx: held, unlock: unlock}, nil
}

func (c rueidislockClient) Close() error {
	c.locker.Close()
	return nil
}

type rueidislockLease struct {
	ctx    context.Context
	unlock context.CancelFunc
}

func (l rueidislockLease) Context() context.Context { return l.ctx }

// Unlock returns nil, since a CancelFunc reports no error.
func (l rueidislockLease) Unlock(context.Context) error {
	l.unlock()
	return nil
}
