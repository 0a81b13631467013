package engine

import (
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

// defaultLease is the session time-out when Config.Lease is not set.
const defaultLease = 10 * time.Second

// checkTimeout bounds the question whether a coordination server answers:
// neither client gives up by itself on a port where something else listens.
const checkTimeout = 5 * time.Second

// Absent says why a server that this engine could have started was not, by
// server; "" where that is not the reason.
func (e *Engine) Absent(server string) string { return e.absent[server] }

// connectCoordination opens the clients of e.URLs.
func connectCoordination(e *Engine) error {
	if len(e.URLs.Zookeeper) > 0 {
		lease := e.URLs.Lease
		if lease == 0 {
			lease = defaultLease
		}
		session, err := zookeeper.Open(e.URLs.Zookeeper, lease)
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

// openEtcd makes a client that tries each call once and looks for a server
// that is gone every second at most; gRPC would let it be for two minutes. The
// last endpoint may end in a path, which all keys of this shop then begin with.
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
		DialKeepAliveTime:    5 * time.Second, // the least that a server allows
		DialKeepAliveTimeout: 5 * time.Second,
		MaxUnaryRetries:      1, // the first try counts
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: 2 * time.Second}),
			grpc.WithChainUnaryInterceptor(failFast),
		},
		Logger: zap.NewNop(), // what it would log it returns too
	})
	if err != nil || prefix == "" {
		return client, err
	}
	client.KV = namespace.NewKV(client.KV, prefix+"/")
	client.Watcher = namespace.NewWatcher(client.Watcher, prefix+"/")
	return client, nil
}

// failFast: a call fails when no server can be reached. The library would let
// it wait for one as long as its context lasts.
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
		return nil, fmt.Errorf("%q is not an endpoint; give host:2379 or https://host:2379", endpoint)
	}
	return u, nil
}

// checkCoordination adds to down what of ZooKeeper and etcd does not answer.
func checkCoordination(ctx context.Context, e *Engine, down map[string]error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if e.Zookeeper != nil {
		if err := e.Zookeeper.Ping(ctx); err != nil {
			down["zookeeper"] = err
		}
	}
	if e.Etcd != nil {
		// A read that needs the leader, as a lock does.
		if _, err := e.Etcd.Get(ctx, "shop/ready", clientv3.WithCountOnly()); err != nil {
			down["etcd"] = err
		}
	}
}
