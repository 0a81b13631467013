package localserver

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Needs of the catalogue's strategies that a lock server satisfies.
const (
	needsRedis     = "redis"
	needsRedlock   = "redlock"
	needsZookeeper = "zookeeper"
	needsEtcd      = "etcd"
)

// LockServers are the lock servers that strategies need. Those that were not asked for, and
// those that are not installed, are nil.
type LockServers struct {
	Redis     RedisService
	Redlock   []*Redis
	Zookeeper *Zookeeper
	Etcd      *Etcd
	Absent    map[string]string // by need: how to get what is not installed
}

// StartLockServers starts the servers of the needs side by side: Redis as a RedisServer says,
// and so many Redlock nodes. env returns more for the environment of a Redis, NAME=value; nil
// for nothing. ZooKeeper and etcd may be absent: it is an error if a strategy asks for them.
func StartLockServers(g *Group, needs []string, redis RedisServer, redlock int, env func(name string) ([]string, error)) (*LockServers, error) {
	if env == nil {
		env = func(string) ([]string, error) { return nil, nil }
	}
	environs := func(name string, n int) ([][]string, error) {
		all := make([][]string, n)
		for i := range all {
			var err error
			if all[i], err = env(fmt.Sprintf("%s-%d", name, i)); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	l := &LockServers{Absent: map[string]string{}}
	var (
		mu     sync.Mutex // guards Absent
		starts errgroup.Group
	)
	start := func(need string, start func() error) {
		if !slices.Contains(needs, need) {
			return
		}
		starts.Go(func() error {
			err := start()
			if errors.Is(err, ErrMissing) && need != needsRedis && need != needsRedlock {
				mu.Lock()
				defer mu.Unlock()
				l.Absent[need] = err.Error()
				return nil
			}
			return err
		})
	}
	start(needsRedis, func() (err error) {
		all, err := environs(needsRedis, redis.Nodes())
		if err == nil {
			l.Redis, err = redis.Start(g, all)
		}
		return err
	})
	start(needsRedlock, func() (err error) {
		all, err := environs(needsRedlock, redlock)
		if err == nil {
			l.Redlock, err = startRedisNodes(g, all, "", func(int, int) ([]string, error) { return []string{"--appendonly", "no"}, nil })
		}
		return err
	})
	start(needsZookeeper, func() (err error) { l.Zookeeper, err = StartZookeeper(g); return err })
	start(needsEtcd, func() (err error) { l.Etcd, err = StartEtcd(g); return err })
	return l, starts.Wait()
}

// Only returns the servers of the needs alone.
func (l *LockServers) Only(needs ...string) *LockServers {
	only := &LockServers{Absent: l.Absent}
	for _, need := range needs {
		switch need {
		case needsRedis:
			only.Redis = l.Redis
		case needsRedlock:
			only.Redlock = l.Redlock
		case needsZookeeper:
			only.Zookeeper = l.Zookeeper
		case needsEtcd:
			only.Etcd = l.Etcd
		}
	}
	return only
}
