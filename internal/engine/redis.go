package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/oversell/oversell/internal/engine/topology"
)

// A redisKind is a way in which the Redis that --redis names is built: one file, and one
// line in redisKinds.
type redisKind struct {
	topology string // as the promises name it
	scheme   string
	example  string // a URL, for messages

	// open opens e.Redis and sets e.pingRedis. A server of another kind is refused.
	open func(ctx context.Context, e *Engine) error
}

// redisKinds are those that --redis may name.
func redisKinds() []redisKind {
	return []redisKind{
		{topology.Single, "redis", "redis://[:password@]host:6379", openSingle},
		{topology.Sentinel, "redis+sentinel", "redis+sentinel://[:password@]host1:26379,host2,host3/mymaster", openSentinel},
		{topology.Cluster, "redis+cluster", "redis+cluster://[:password@]host1:6379,host2,host3", openCluster},
	}
}

// openRedis opens what e.URLs.Redis names.
func openRedis(ctx context.Context, e *Engine) error {
	scheme, _, _ := strings.Cut(e.URLs.Redis, "://")
	for _, kind := range redisKinds() {
		if kind.scheme == scheme {
			e.Topology = kind.topology
			return kind.open(ctx, e)
		}
	}
	return openSingle(ctx, e) // rediss and unix, or an error of the library's
}

// openSingle opens one server.
func openSingle(ctx context.Context, e *Engine) error {
	client, err := redisNode(e.URLs, e.URLs.Redis, false)
	if err != nil {
		return err
	}
	e.Redis, e.Topology = client, topology.Single
	e.onClose(client.Close)
	e.pingRedis = func(ctx context.Context) error { return client.Ping(ctx).Err() }
	switch redisMode(ctx, client) {
	case "cluster":
		return fmt.Errorf("a node of a Redis Cluster answers there; give redis+cluster://%s", client.Options().Addr)
	case "sentinel":
		return fmt.Errorf("a sentinel answers there; give redis+sentinel://%s/%s", client.Options().Addr, oneOr(masters(ctx, client), "mymaster"))
	}
	if primary := primaryOf(ctx, client); primary != "" {
		return fmt.Errorf("a replica answers there, which takes no writes; its primary is %s", primary)
	}
	return nil
}

// primaryOf is whom a server follows; "" where it takes writes itself, or says nothing.
func primaryOf(ctx context.Context, client *redis.Client) string {
	role, err := client.Do(ctx, "ROLE").Slice() // slave, host, port, state, offset
	if err != nil || len(role) < 3 || role[0] != "slave" {
		return ""
	}
	return fmt.Sprintf("%v:%v", role[1], role[2])
}

// redisMode is what a server says of itself: standalone, sentinel or cluster; "" when it
// says nothing.
func redisMode(ctx context.Context, client *redis.Client) string {
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return "" // the ping says what is wrong
	}
	_, rest, _ := strings.Cut(info, "redis_mode:")
	mode, _, _ := strings.Cut(rest, "\r\n")
	return mode
}

func oneOr(some []string, other string) string {
	if len(some) > 0 {
		return some[0]
	}
	return other
}

// redisNode makes a client of one server that tries each command once.
//
// A command to a lock's single Redis is not interrupted when a buyer hangs up
// (contextTimeout false): the key might be set and the answer lost, and the product
// would be locked for the rest of the TTL. A command to a Redlock node is interrupted,
// since one silent node must not hold up the majority; the lock then deletes its key on
// every node.
func redisNode(c Config, address string, contextTimeout bool) (*redis.Client, error) {
	if strayAt(address) {
		return nil, errUnencoded
	}
	o, err := redis.ParseURL(address)
	var unreadable *url.Error
	if errors.As(err, &unreadable) { // its text would show the password
		err = unreadable.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%w; give %s", err, redisExamples())
	}
	once := c.redisOptions(c.Wait / 2)
	o.MaxRetries, o.DialerRetries, o.DisableIdentity = once.MaxRetries, once.DialerRetries, once.DisableIdentity
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = once.DialTimeout, once.ReadTimeout, once.WriteTimeout
	o.MaintNotificationsConfig, o.ContextTimeoutEnabled = once.MaintNotificationsConfig, contextTimeout
	if o.TLSConfig == nil {
		o.Dialer = once.Dialer
	}
	return redis.NewClient(o), nil
}

// redisOptions are those of every client: a command is tried once, since a lock's script
// must not run twice unseen, and is given up after share.
func (c Config) redisOptions(share time.Duration) *redis.UniversalOptions {
	timeout := redisTimeout(share)
	return &redis.UniversalOptions{
		Dialer: c.Detours.dialer(), MaxRetries: -1, DialerRetries: 1, DisableIdentity: true,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// redisTimeout bounds a command when Redis hangs: less than a buyer waits, so that the
// answer says what is down, and not that others came first.
func redisTimeout(share time.Duration) time.Duration {
	return min(max(share, 50*time.Millisecond), 2*time.Second)
}

func redisExamples() string {
	var examples []string
	for _, kind := range redisKinds() {
		examples = append(examples, kind.example)
	}
	return strings.Join(examples, ", or ")
}

// ask makes a client of each host that is told to answer within the timeout, and asks
// them all at once. The answers come in the order of the hosts.
func (l hostList) ask(ctx context.Context, o *redis.UniversalOptions, question func(context.Context, *redis.Client) error) []error {
	errs := make([]error, len(l.hosts))
	done := make(chan struct{})
	for i, host := range l.hosts {
		go func() {
			one := o.Simple()
			one.Addr = host
			client := redis.NewClient(one)
			defer func() { done <- struct{}{} }()
			errs[i] = errors.Join(question(ctx, client), client.Close())
		}()
	}
	for range l.hosts {
		<-done
	}
	return errs
}

// dead warns of hosts that do not answer, and is an error when none does.
func (l hostList) dead(e *Engine, errs []error) error {
	var dead []string
	for i, err := range errs {
		if err != nil {
			dead = append(dead, l.hosts[i])
		}
	}
	switch len(dead) {
	case 0:
		return nil
	case len(l.hosts):
		return fmt.Errorf("none of %s answers: %w", strings.Join(dead, ", "), errs[0])
	}
	e.Warnings = append(e.Warnings, fmt.Sprintf("--redis: %s of %d nodes does not answer: %s",
		strings.Join(dead, ", "), len(l.hosts), strings.ReplaceAll(firstError(errs).Error(), "\n", "; ")))
	return nil
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
