package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// connect opens the connections to e.URLs.
func connect(ctx context.Context, e *Engine) error {
	if err := e.openDB(ctx); err != nil {
		return fmt.Errorf("--db: %w", err)
	}
	if e.URLs.Redis != "" {
		client, err := openRedis(e.URLs, e.URLs.Redis, false)
		if err != nil {
			return fmt.Errorf("--redis: %w", err)
		}
		e.Redis = client
		e.onClose(client.Close)
	}
	seen := map[string]bool{}
	for _, node := range e.URLs.Redlock {
		client, err := openRedis(e.URLs, node, true)
		if err != nil {
			return fmt.Errorf("--redlock: %w", err)
		}
		addr := client.Options().Addr
		if seen[addr] {
			return errors.Join(fmt.Errorf("--redlock: %s is there twice; a node counts once for a majority", addr), client.Close())
		}
		seen[addr] = true
		e.Redlock = append(e.Redlock, client)
		e.onClose(client.Close)
	}
	if n := len(e.Redlock); n > 0 && n%2 == 0 {
		e.Warnings = append(e.Warnings, fmt.Sprintf(
			"--redlock has %d nodes: a majority is %d, so no more of them may fail than of %d; give an odd number", n, n/2+1, n-1))
	}
	return connectCoordination(e)
}

// openRedis makes a client that tries each command once.
//
// A command to a lock's single Redis is not interrupted when a buyer hangs up
// (contextTimeout false): the key might be set and the answer lost, and the product
// would be locked for the rest of the TTL. A command to a Redlock node is interrupted,
// since one silent node must not hold up the majority; the lock then deletes its key on
// every node.
//
// A command fails after half a buyer's wait when Redis hangs, so that the answer says
// what is down, and not that others came first.
func openRedis(c Config, address string, contextTimeout bool) (*redis.Client, error) {
	o, err := redis.ParseURL(address)
	var unreadable *url.Error
	if errors.As(err, &unreadable) { // its text would show the password
		err = unreadable.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%w; give redis://[:password@]host:6379", err)
	}
	o.MaxRetries = -1 // a lock's script must not run twice unseen
	o.ContextTimeoutEnabled = contextTimeout
	timeout := min(max(c.Wait/2, 50*time.Millisecond), 2*time.Second)
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = timeout, timeout, timeout
	o.DialerRetries = 1
	if o.TLSConfig == nil {
		o.Dialer = c.Detours.dialer()
	}
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

// ping asks every server once, so that a wrong address is noticed at the start and not
// by the first buyer.
func ping(ctx context.Context, e *Engine) error {
	for server, err := range e.Check(ctx) {
		return fmt.Errorf("the %s does not answer: %w", server, err)
	}
	return nil
}
