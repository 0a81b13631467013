package fault

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcdLeases finds and revokes the leases of locks in etcd, as an operator can.
type etcdLeases struct{ client *clientv3.Client }

func openEtcdLeases(addr string) (*etcdLeases, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 10 * time.Second})
	return &etcdLeases{client}, err
}

func (e *etcdLeases) close() { _ = e.client.Close() }

// holder returns the oldest entry in the product's queue: the key with the lowest create revision.
func (e *etcdLeases) holder(ctx context.Context, product string) (place, error) {
	all, err := e.client.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return place{}, err
	}
	for _, key := range all.Kvs {
		if key.Lease != 0 && strings.Contains(string(key.Key), product) {
			return place{string(key.Key), key.Lease}, nil
		}
	}
	return place{}, missed("none of etcd's %d keys is a lock of the product", len(all.Kvs))
}

func (e *etcdLeases) revoke(ctx context.Context, p place) error {
	_, err := e.client.Revoke(ctx, clientv3.LeaseID(p.owner))
	return err
}

func (e *etcdLeases) gone(ctx context.Context, p place) (bool, error) {
	lease, err := e.client.TimeToLive(ctx, clientv3.LeaseID(p.owner))
	if err != nil {
		return false, err
	}
	key, err := e.client.Get(ctx, p.node, clientv3.WithCountOnly())
	if err != nil {
		return false, err
	}
	return lease.TTL < 0 && key.Count == 0, nil // a TTL of -1 means that the lease does not exist
}
