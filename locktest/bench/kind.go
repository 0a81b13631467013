package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/locktest"
)

// A kind is a lock library with its options: one row of the table.
type kind struct {
	name string
	// connect opens a client. ttl 0 means the library's default or, if it has none, unsetTTL.
	connect func(addr string, ttl time.Duration) (locktest.Client, error)
	// keys returns the keys of the lock with that name in Redis. If there are several, the holder needs a
	// majority of them.
	keys func(name string) []string
	// queue returns the list of the waiters. It is nil if the server keeps no list.
	queue func(name string) string

	anywhere bool // whether the library also works with a Redis of several servers

	// Properties that the library's documentation claims.
	renews, signalsLoss, fair bool
	// renewEvery is the interval of renewals as a share of the TTL; 0 means that the library does not renew.
	renewEvery float64
}

// unsetTTL is the lease of a library that has no default.
const unsetTTL = 10 * time.Second

func kinds() []kind {
	all := []kind{
		redislockKind(time.Millisecond), redislockKind(10 * time.Millisecond), redislockKind(100 * time.Millisecond),
		redsyncKind(),
		rueidislockKind("rueidislock", rueidislockDefault),
		rueidislockKind("rueidislock-setpx", rueidislockSETPX),
		rueidislockKind("rueidislock-one-key", rueidislockOneKey),
	}
	return append(all, rlockKinds()...)
}

func kindOf(name string) (kind, error) {
	for _, k := range kinds() {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("no lock %q", name)
}

// open makes a locktest.Subject in a child process. The parameter `spec` is "name@host:port", with the name
// of a kind.
func open(spec string) (locktest.Subject, error) {
	name, addr, _ := strings.Cut(spec, "@")
	k, err := kindOf(name)
	return locktest.Subject{Name: name, Spec: spec, Connect: func(context.Context) (locktest.Client, error) {
		return k.connect(addr, 0)
	}}, err
}

func oneKey(name string) []string { return []string{name} }

// dial opens a client with the defaults of go-redis. The parameter `addr` is the host:port of one server, or
// a RedisService.URL with several.
func dial(addr string) redis.UniversalClient {
	if hosts, ok := strings.CutPrefix(addr, "redis+cluster://"); ok {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(hosts, ","), DisableRoutingPolicies: true})
	}
	if rest, ok := strings.CutPrefix(addr, "redis+sentinel://"); ok {
		hosts, name, _ := strings.Cut(rest, "/")
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: name, SentinelAddrs: strings.Split(hosts, ",")})
	}
	return redis.NewClient(&redis.Options{Addr: addr})
}
