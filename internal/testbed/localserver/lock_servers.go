package localserver

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Lock servers that strategies may need, by their names in the catalogue.
const (
	needsRedis     = "redis"
	needsRedlock   = "redlock"
	needsZookeeper = "zookeeper"
	needsEtcd      = "etcd"
)

// Members is the size of the smallest ensemble that can lose a member and continue.
const Members = 3

// startAll starts n members in parallel. After an error it ends the started members.
func startAll[M interface {
	comparable
	Kill() error
}](n int, start func(i int) (M, error)) ([]M, error) {
	members := make([]M, n)
	var starts errgroup.Group
	for i := range members {
		starts.Go(func() error {
			m, err := start(i)
			if err == nil {
				members[i] = m
			}
			return err
		})
	}
	err := starts.Wait()
	if err == nil {
		return members, nil
	}
	var none M
	for _, m := range members {
		if m != none {
			err = errors.Join(err, m.Kill())
		}
	}
	return nil, err
}

// LockServers contains the running lock servers. A server is nil if it was not requested or is not installed.
type LockServers struct {
	Redis      RedisService
	Redlock    []*Redis
	Zookeeper  []*Zookeeper      // one, or the members of an ensemble
	Etcd       []*Etcd           // one, or the members of a cluster
	WhyMissing map[string]string // how to install a missing server, by the server's name
}

// StartLockServers starts the servers in `needs` in parallel. `redis` is the kind of Redis, and `redlock` the
// number of Redlock nodes. `env` returns additional environment variables of a Redis, NAME=value; it may be
// nil. A missing ZooKeeper or etcd is no error: WhyMissing says how to install it.
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
	l := &LockServers{WhyMissing: map[string]string{}}
	var (
		mu     sync.Mutex // guards WhyMissing
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
				l.WhyMissing[need] = err.Error()
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
	start(needsZookeeper, func() (err error) { l.Zookeeper, err = startZookeepers(g, 1); return err })
	start(needsEtcd, func() (err error) { l.Etcd, err = startEtcds(g, 1); return err })
	return l, starts.Wait()
}

// Only returns those of the servers that the given needs name.
func (l *LockServers) Only(needs ...string) *LockServers {
	only := &LockServers{WhyMissing: l.WhyMissing}
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
