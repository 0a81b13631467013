package own

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

type servers []*serverstate.Redis

// watch adds a server and opens a connection of its own, over which the explorer reads the server's data.
func (all *servers) watch(name string, like redis.UniversalClient) error {
	admin, err := gate.Direct(like)
	if err != nil {
		return err
	}
	*all = append(*all, serverstate.NewRedis(name, admin))
	return nil
}

func (all servers) close() (err error) {
	for _, s := range all {
		err = errors.Join(err, s.Close())
	}
	return err
}

func (all servers) clear(ctx context.Context) error {
	for _, s := range all {
		if err := s.Clear(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (all servers) leases(ctx context.Context, now time.Time) (found []serverstate.Lease, _ error) {
	for _, s := range all {
		leases, err := s.Leases(ctx, now)
		if err != nil {
			return nil, err
		}
		found = append(found, leases...)
	}
	return found, nil
}

func (all servers) touch(name string) {
	for _, s := range all {
		if s.Name == name {
			s.Touch()
		}
	}
}

// unheard waits until every server has ended the subscriptions of earlier runs.
func (all servers) unheard(ctx context.Context) error {
	for _, s := range all {
		if err := s.Unheard(ctx); err != nil {
			return err
		}
	}
	return nil
}

// suffix returns the ending of a node's commands in a schedule: "-a" for the first Redlock node, "" for any other
// server.
func suffix(server string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(server, "redlock-"))
	if err != nil {
		return ""
	}
	return "-" + string(rune('a'+n-1))
}
