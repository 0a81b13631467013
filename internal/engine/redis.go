package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/oversell/oversell/internal/engine/topology"
)

// A redisKind is one topology of Redis. Each has its own file, and a line in the function redisKinds.
type redisKind struct {
	topology string // name of the topology in the catalogue of strategies
	scheme   string
	example  string // example URL for messages

	// open opens e.Redis and sets e.pingRedis. It rejects a server of another kind.
	open func(ctx context.Context, e *Engine) error
}

// redisKinds returns the kinds of Redis that --redis accepts.
func redisKinds() []redisKind {
	return []redisKind{
		{topology.Single, "redis", "redis://[:password@]host:6379", openSingle},
		{topology.Sentinel, "redis+sentinel", "redis+sentinel://[:password@]host1:26379,host2,host3/mymaster", openSentinel},
		{topology.Cluster, "redis+cluster", "redis+cluster://[:password@]host1:6379,host2,host3", openCluster},
	}
}

func openRedis(ctx context.Context, e *Engine) error {
	scheme, _, _ := strings.Cut(e.URLs.Redis, "://")
	for _, kind := range redisKinds() {
		if kind.scheme == scheme {
			e.Topology = kind.topology
			return kind.open(ctx, e)
		}
	}
	return openSingle(ctx, e) // the schemes rediss and unix; for other schemes the library returns an error
}

func openSingle(ctx context.Context, e *Engine) error {
	client, err := redisNode(e.URLs, e.URLs.Redis, false)
	if err != nil {
		return err
	}
	e.Redis, e.Topology = client, topology.Single
	e.onClose(client.Close)
	pinger, err := redisNode(e.URLs, e.URLs.Redis, false)
	if err != nil {
		return err
	}
	e.onClose(pinger.Close)
	e.pingRedis = func(ctx context.Context) error { return pinger.Ping(ctx).Err() }
	switch redisMode(ctx, client) {
	case "cluster":
		return fmt.Errorf("a node of a Redis Cluster answers there; use redis+cluster://%s", client.Options().Addr)
	case "sentinel":
		return fmt.Errorf("a sentinel answers there; use redis+sentinel://%s/%s", client.Options().Addr, append(masters(ctx, client), "mymaster")[0])
	}
	if primary := primaryOf(ctx, client); primary != "" {
		return fmt.Errorf("a replica answers there, which takes no writes; its primary is %s", primary)
	}
	return nil
}

// primaryOf returns the primary of a replica; "" if the server accepts writes or does not say.
func primaryOf(ctx context.Context, client *redis.Client) string {
	role, err := client.Do(ctx, "ROLE").Slice() // slave, host, port, state, offset
	if err != nil || len(role) < 3 || role[0] != "slave" {
		return ""
	}
	return fmt.Sprintf("%v:%v", role[1], role[2])
}

// redisMode returns the mode that a server reports: standalone, sentinel or cluster; "" if it does not answer.
func redisMode(ctx context.Context, client *redis.Client) string {
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return "" // ping reports the error
	}
	_, rest, _ := strings.Cut(info, "redis_mode:")
	mode, _, _ := strings.Cut(rest, "\r\n")
	return mode
}

// redisNode returns a client of one server that tries each command once. A Redlock node gets less time to
// answer, since one silent node must not delay the majority. If such a node sets a key too late, the lock
// deletes the key on every node.
func redisNode(c Config, address string, ofRedlock bool) (*redis.Client, error) {
	if strayAt(address) {
		return nil, errUnencoded
	}
	o, err := redis.ParseURL(address)
	var unreadable *url.Error
	if errors.As(err, &unreadable) { // the text of err contains the password
		err = unreadable.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%w; use %s", err, redisExamples())
	}
	once := c.redisOptions()
	o.MaxRetries, o.DialerRetries, o.DisableIdentity = once.MaxRetries, once.DialerRetries, once.DisableIdentity
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = once.DialTimeout, once.ReadTimeout, once.WriteTimeout, once.PoolTimeout
	o.MaintNotificationsConfig, o.ContextTimeoutEnabled = once.MaintNotificationsConfig, once.ContextTimeoutEnabled
	o.Dialer = c.redisDialer(o).answered(c.answerTime())
	if ofRedlock {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = c.answerTime(), c.answerTime(), c.answerTime(), c.answerTime()
		o.Dialer = c.redisDialer(o)
	}
	return redis.NewClient(o), nil
}

// redisOptions returns the options of every client. A command is tried once, since a lock's script must not
// run twice. It ends with the deadline of its context, which is the end of the buyer's wait. The timeouts are
// for commands without a deadline.
func (c Config) redisOptions() *redis.UniversalOptions {
	silence := c.Wait + 10*time.Second
	return &redis.UniversalOptions{
		Dialer:     c.redisDialer(&redis.Options{DialTimeout: silence}).answered(c.answerTime()),
		MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, ContextTimeoutEnabled: true,
		DialTimeout: silence, ReadTimeout: silence, WriteTimeout: silence, PoolTimeout: silence,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// answerTime is how long Redis may take to answer after a buyer's wait is over. The buyer learns its outcome
// at most that much later. A Redlock node gets no more time than this in any case.
func (c Config) answerTime() time.Duration {
	return min(max(c.Wait/2, 50*time.Millisecond), 2*time.Second)
}

func (c Config) redisDialer(o *redis.Options) dialFunc {
	dial := redis.NewDialer(o)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, network, c.Detours.To(address))
	}
}

func redisExamples() string {
	var examples []string
	for _, kind := range redisKinds() {
		examples = append(examples, kind.example)
	}
	return strings.Join(examples, ", or ")
}

// askTimeout limits the first answer of one host among several. A silent host must not use up the
// time of the others.
const askTimeout = connectTimeout / 3

// ask puts a question to all hosts that answer a PING, in parallel, each through its own client. It returns
// the errors in the order of the hosts.
func (l hostList) ask(ctx context.Context, o *redis.UniversalOptions, question func(context.Context, *redis.Client) error) []error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	errs := make([]error, len(l.hosts))
	var all sync.WaitGroup
	for i, host := range l.hosts {
		all.Go(func() {
			one := o.Simple()
			one.Addr = host
			client := redis.NewClient(one)
			if errs[i] = client.Ping(ctx).Err(); errs[i] == nil {
				errs[i] = question(ctx, client)
			}
			errs[i] = errors.Join(errs[i], client.Close())
		})
	}
	all.Wait()
	return errs
}

// A wrongKind is the error for a host that answers and is another kind of server.
type wrongKind struct{ error }

// checkReachable adds a warning for each silent host. It returns an error if all are silent, or if one is another
// kind of server.
func (l hostList) checkReachable(e *Engine, errs []error) error {
	var dead []string
	for i, err := range errs {
		var wrong wrongKind
		if errors.As(err, &wrong) {
			return wrong
		}
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
		strings.Join(dead, ", "), len(l.hosts), strings.ReplaceAll(cmp.Or(errs...).Error(), "\n", "; ")))
	return nil
}
