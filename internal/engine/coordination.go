package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/oversell/oversell/internal/engine/zookeeper"
)

const defaultLease = 10 * time.Second

// WhyMissing says why this engine did not start a server, such as "etcd". It returns "" if the engine started
// the server, or never starts servers of this kind.
func (e *Engine) WhyMissing(server string) string { return e.whyMissing[server] }

func connectCoordination(e *Engine) error {
	if len(e.URLs.Zookeeper) > 0 {
		session, err := zookeeper.Open(e.URLs.Zookeeper, cmp.Or(e.URLs.Lease, defaultLease))
		if err != nil {
			return fmt.Errorf("--zookeeper: %w", err)
		}
		e.Zookeeper = session
		e.onClose(session.Close)
	}
	if len(e.URLs.Etcd) > 0 {
		client, err := openEtcd(e.URLs.Etcd)
		if err != nil {
			return fmt.Errorf("--etcd: %w", err)
		}
		e.Etcd = client
		e.onClose(client.Close)
	}
	return nil
}

// openEtcd returns a client that tries each call once. It tries to reconnect to a lost server at least once per
// second; by default gRPC waits up to two minutes. The last endpoint may end in a path, which becomes the
// prefix of all keys.
func openEtcd(endpoints []string) (*clientv3.Client, error) {
	var prefix string
	endpoints = slices.Clone(endpoints)
	for i := range endpoints {
		u, err := parseEndpoint(endpoints[i])
		if err != nil {
			return nil, err
		}
		if i == len(endpoints)-1 {
			prefix, u.Path = strings.Trim(u.Path, "/"), ""
		}
		if u.Path != "" {
			return nil, fmt.Errorf("%q: only the last endpoint may end in a path", endpoints[i])
		}
		endpoints[i] = u.String()
	}
	reconnect := backoff.DefaultConfig
	reconnect.BaseDelay, reconnect.MaxDelay = 50*time.Millisecond, time.Second
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialKeepAliveTime:    5 * time.Second, // the minimum that a server allows
		DialKeepAliveTimeout: 5 * time.Second,
		MaxUnaryRetries:      1, // this number includes the first try
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: 2 * time.Second}),
			grpc.WithChainUnaryInterceptor(failFast),
		},
		Logger: zap.NewNop(), // the client also returns its errors
	})
	if err != nil || prefix == "" {
		return client, err
	}
	client.KV = namespace.NewKV(client.KV, prefix+"/")
	client.Watcher = namespace.NewWatcher(client.Watcher, prefix+"/")
	return client, nil
}

// failFast makes a call fail if no server is reachable. By default the library waits for a server until the
// context ends.
func failFast(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(ctx, method, req, reply, c, append(slices.Clip(opts), grpc.WaitForReady(false))...)
}

func parseEndpoint(endpoint string) (*url.URL, error) {
	text := endpoint
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.Port() == "" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("%q is not an endpoint; use host:2379 or https://host:2379", endpoint)
	}
	return u, nil
}

// pingEtcd reads a key. A read needs the leader of the cluster, as a lock does.
func (e *Engine) pingEtcd(ctx context.Context) error {
	_, err := e.Etcd.Get(ctx, "shop/ready", clientv3.WithCountOnly())
	return err
}
