package engine

import (
	"context"
	"errors"
	"fmt"
)

func connect(ctx context.Context, e *Engine) error {
	if err := e.openDB(ctx); err != nil {
		return fmt.Errorf("--db: %w", err)
	}
	if e.URLs.Redis != "" {
		if err := openRedis(ctx, e); err != nil {
			return fmt.Errorf("--redis: %w", err)
		}
	}
	seen := map[string]bool{}
	for _, node := range e.URLs.Redlock {
		client, err := redisNode(e.URLs, node, true)
		if err != nil {
			return fmt.Errorf("--redlock: %w", err)
		}
		addr := client.Options().Addr
		if seen[addr] {
			return errors.Join(fmt.Errorf("--redlock: %s occurs twice; a node counts once for a majority", addr), client.Close())
		}
		seen[addr] = true
		e.Redlock = append(e.Redlock, client)
		e.onClose(client.Close)
	}
	if n := len(e.Redlock); n > 0 && n%2 == 0 {
		e.Warnings = append(e.Warnings, fmt.Sprintf(
			"--redlock has %d nodes: a majority is %d, so only as many may fail as with %d nodes; use an odd number", n, n/2+1, n-1))
	}
	return connectCoordination(e)
}

// ping asks every server once, so that a wrong address fails at the start and not at the first buyer.
func ping(ctx context.Context, e *Engine) error {
	for server, err := range e.Check(ctx) {
		return fmt.Errorf("the %s does not answer; check that it runs and that its address is right: %w", server, err)
	}
	return nil
}
