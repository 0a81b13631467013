package lockstrategy

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// polled is a Locker on one key of one Redis, for locks that differ only in
// the commands that take and free the key.
type polled struct {
	strategy string
	redis    redis.UniversalClient
	poller   poller

	// take tries once. The token is handed to free.
	take func(ctx context.Context, key string) (token string, taken bool, err error)
	// free gives the key back. ErrNotHeld when it sees that it is not ours.
	free func(ctx context.Context, key, token string) error
}

func (p *polled) key(product string) string {
	return "shop:lock:" + p.strategy + ":{" + product + "}"
}

// Lock is Locker.Lock.
func (p *polled) Lock(ctx context.Context, product string) (Lease, error) {
	lease := &polledLease{locker: p, product: product}
	err := p.poller.obtain(ctx, product, func() (taken bool, err error) {
		lease.token, taken, err = p.take(ctx, p.key(product))
		return taken, serverError("redis", err)
	})
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// Reset deletes the key, whoever holds it.
func (p *polled) Reset(ctx context.Context, product string) error {
	return serverError("redis", p.redis.Del(ctx, p.key(product)).Err())
}

type polledLease struct {
	locker  *polled
	product string
	token   string
}

func (l *polledLease) Token() string { return l.token }

func (l *polledLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx) // none of these looks after its lease
}

func (l *polledLease) Release(ctx context.Context) error {
	defer l.locker.poller.released(l.product)
	return l.locker.free(ctx, l.locker.key(l.product), l.token)
}

// deleteBlindly frees the key, whoever holds it.
func deleteBlindly(client redis.UniversalClient) func(ctx context.Context, key, token string) error {
	return func(ctx context.Context, key, _ string) error {
		return serverError("redis", client.Del(ctx, key).Err())
	}
}
