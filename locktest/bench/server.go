package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/locktest"
)

// A server is a private Redis of this process: one redis-server, or several.
type server struct {
	group *localserver.Group
	redis *localserver.Redis // nil if there are several servers
	addr  string             // in the form that dial takes
	rdb   redis.UniversalClient
}

func startServer(kind string) (*server, error) {
	build, err := localserver.RedisNamed(kind)
	if err != nil {
		return nil, err
	}
	group, err := localserver.NewGroup()
	if err != nil {
		return nil, err
	}
	service, err := build.Start(group, nil)
	if err != nil {
		return nil, errors.Join(err, group.Close())
	}
	s := &server{group: group, addr: service.URL()}
	if build.Name == topology.Single {
		s.redis = service.Nodes()[0]
		s.addr = s.redis.Addr
	}
	s.rdb = dial(s.addr)
	return s, nil
}

func (s *server) close() error {
	return errors.Join(s.rdb.Close(), s.group.Close())
}

func (s *server) subject(k kind, ttl time.Duration) locktest.Subject {
	subject := locktest.Subject{
		Name: k.name, Spec: k.name + "@" + s.addr,
		Connect: func(context.Context) (locktest.Client, error) { return k.connect(s.addr, ttl) },
		TTL:     ttl,
		Renews:  k.renews, RenewEvery: time.Duration(k.renewEvery * float64(ttl)),
		SignalsLoss: k.signalsLoss, Fair: k.fair,
		Forget: func(ctx context.Context, name string) error {
			return s.rdb.Del(ctx, k.keys(name)...).Err()
		},
		Remaining: func(ctx context.Context, name string) (time.Duration, error) { return s.remaining(ctx, k.keys(name)) },
	}
	if s.redis != nil { // Freeze needs a single server: with several, the others would replace a frozen one
		subject.Freeze, subject.Commands = s.freeze, s.commands
	}
	if k.queue != nil {
		subject.Waiting = func(ctx context.Context, name string) (int, error) {
			n, err := s.rdb.LLen(ctx, k.queue(name)).Result()
			return int(n), err
		}
	}
	return subject
}

// remaining returns for how long a majority of the keys still exists, from their TTLs.
func (s *server) remaining(ctx context.Context, keys []string) (time.Duration, error) {
	var left []time.Duration
	for _, key := range keys {
		d, err := s.rdb.PTTL(ctx, key).Result()
		if err != nil {
			return 0, err
		}
		left = append(left, max(d, 0)) // -2: no such key
	}
	slices.Sort(left)
	return left[len(left)/2], nil
}

func (s *server) freeze(context.Context) (thaw func() error, err error) {
	return func() error { return s.redis.Signal(syscall.SIGCONT) }, s.redis.Signal(syscall.SIGSTOP)
}

// commands returns the statistic total_commands_processed of Redis, which also counts the commands of scripts
// (TestCommandsCountScripts).
func (s *server) commands(ctx context.Context) (int64, error) {
	info, err := s.rdb.Info(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "total_commands_processed:"); ok {
			return strconv.ParseInt(n, 10, 64)
		}
	}
	return 0, fmt.Errorf("INFO stats has no total_commands_processed")
}
