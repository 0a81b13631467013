package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
)

// openSentinel opens the primary that the sentinels name, and follows failovers. A new connection asks the
// sentinels for the primary. When they report a failover, the client closes its old connections. The user and
// the password of the URL belong to the Redis servers. The query may have sentinel_user and sentinel_password
// for the sentinels.
func openSentinel(ctx context.Context, e *Engine) error {
	l, err := parseHostList(e.URLs.Redis, "26379")
	if err != nil {
		return fmt.Errorf("%w; use %s", err, redisExamples())
	}
	name, number, _ := strings.Cut(l.path, "/")
	db := 0
	if number != "" {
		if db, err = strconv.Atoi(number); err != nil || db < 0 {
			return fmt.Errorf("the database %q is not a number", number)
		}
	}
	if name == "" {
		return errors.New("the URL names no primary; use " + redisKinds()[1].example)
	}
	o := e.URLs.redisOptions()
	o.Dialer = e.URLs.sentinelDialer(l.hosts, o.Dialer)
	o.Username, o.Password = l.query.Get("sentinel_user"), l.query.Get("sentinel_password")
	if err := askSentinels(ctx, e, l, o, name); err != nil {
		return err
	}
	o.SentinelUsername, o.SentinelPassword = o.Username, o.Password
	o.Username, o.Password, o.Addrs, o.MasterName, o.DB = l.user, l.password, l.hosts, name, db
	client, pinger := redis.NewFailoverClient(o.Failover()), redis.NewFailoverClient(o.Failover())
	e.Redis, e.Topology = client, topology.Sentinel
	e.onClose(client.Close)
	e.onClose(pinger.Close)
	// This check is a write. A replica refuses the write; then the library closes the connection and asks the
	// sentinels for the primary. A client that missed a failover would otherwise stay at the old primary.
	e.pingRedis = func(ctx context.Context) error { return pinger.Del(ctx, "shop:ready").Err() }
	return nil
}

// sentinelDialer returns a dial function that gives sentinels less time. For a new connection, the library
// asks its sentinel twice and then all of them. Each answer may take a quarter of a buyer's wait. So a quarter
// is left if one sentinel hangs.
func (c Config) sentinelDialer(sentinels []string, dial dialFunc) dialFunc {
	patience := c.Wait / 4
	toSentinel := c.redisDialer(&redis.Options{DialTimeout: patience})
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if !slices.Contains(sentinels, address) {
			return dial(ctx, network, address)
		}
		conn, err := toSentinel(ctx, network, address)
		return sentinelConn{conn, patience}, err
	}
}

// sentinelConn limits the wait for an answer. A subscription sets no deadline, so its wait is not limited.
type sentinelConn struct {
	net.Conn
	patience time.Duration
}

// SetReadDeadline implements net.Conn.
func (c sentinelConn) SetReadDeadline(at time.Time) error {
	if latest := time.Now().Add(c.patience); at.After(latest) {
		at = latest
	}
	return c.Conn.SetReadDeadline(at)
}

// askSentinels rejects hosts that are not sentinels, or that do not know the primary.
func askSentinels(ctx context.Context, e *Engine, l hostList, o *redis.UniversalOptions, name string) error {
	var mu sync.Mutex
	var known []string
	errs := l.ask(ctx, o, func(ctx context.Context, client *redis.Client) error {
		switch redisMode(ctx, client) {
		case "standalone":
			return wrongKind{fmt.Errorf("%s is not a sentinel; use redis://%[1]s, or the sentinels' hosts", client.Options().Addr)}
		case "cluster":
			return wrongKind{fmt.Errorf("%s is a node of a Redis Cluster; use redis+cluster://%[1]s", client.Options().Addr)}
		}
		names := masters(ctx, client)
		mu.Lock()
		defer mu.Unlock()
		known = append(known, names...)
		return nil
	})
	if err := l.checkReachable(e, errs); err != nil {
		return err
	}
	if !slices.Contains(known, name) {
		slices.Sort(known)
		return fmt.Errorf("the sentinels know no primary %q; they know %s", name, cmp.Or(strings.Join(slices.Compact(known), ", "), "nothing"))
	}
	return nil
}

// masters returns the primary names that a sentinel knows.
func masters(ctx context.Context, client *redis.Client) (names []string) {
	answer, err := client.Do(ctx, "SENTINEL", "MASTERS").Slice()
	if err != nil {
		return nil
	}
	for _, master := range answer {
		if fields, ok := master.(map[any]any); ok {
			names = append(names, fmt.Sprint(fields["name"]))
			continue
		}
		fields, _ := master.([]any)
		if i := slices.Index(fields, any("name")); i >= 0 && i+1 < len(fields) {
			names = append(names, fmt.Sprint(fields[i+1]))
		}
	}
	return names
}
