package web

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// Warnings lists possible problems with the servers. The parameter `replicas` is the number of
// replicas that a lock waits for.
func Warnings(ctx context.Context, e *engine.Engine, replicas int) []string {
	if warning := warnOfReplicas(ctx, e, replicas); warning != "" {
		return append(slices.Clone(e.Warnings), warning)
	}
	return e.Warnings
}

// warnOfReplicas returns a warning if a Redis primary has fewer replicas than a lock waits for, or "".
func warnOfReplicas(ctx context.Context, e *engine.Engine, wait int) string {
	if wait == 0 || e.Redis == nil {
		return ""
	}
	var short []string
	err := topology.EachPrimary(ctx, e.Redis, func(c redis.UniversalClient) error {
		info, err := c.Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(info, "connected_slaves:")
		number, _, _ := strings.Cut(rest, "\r\n")
		n, err := strconv.Atoi(number)
		if err == nil && n < wait {
			short = append(short, strconv.Itoa(n))
		}
		return err
	})
	switch {
	case err != nil:
		return fmt.Sprintf("--redis-wait %d: how many replicas Redis has is not known: %s", wait, strings.ReplaceAll(err.Error(), "\n", "; "))
	case len(short) == 0:
		return ""
	}
	slices.Sort(short)
	return fmt.Sprintf("--redis-wait %d: a primary of Redis has %s replicas now; until it has %d, buyers of %s are told busy", wait, short[0], wait, strings.Join(Confirming(), ", "))
}

// Confirming returns the strategies that can wait until replicas of Redis have stored a lock.
func Confirming() (names []string) {
	for _, e := range lockstrategy.All() {
		if e.Confirms {
			names = append(names, e.Name)
		}
	}
	return names
}

// Uncheck turns the sold-out check off if the servers of the engine e do not support it, and returns the
// reason. It returns "" if the check stays on or was off.
func (c *Config) Uncheck(e *engine.Engine) string {
	why := e.Lacks[dialect.CurrentReads]
	if !c.SoldOutCheck || why == "" {
		return ""
	}
	c.SoldOutCheck = false
	return "--sold-out-check: this database cannot tell what is left without a lock: " + why
}
