package lockstrategy

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/oversell/oversell/internal/engine/zookeeper"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/purchase"
)

func zookeeperEntry() Entry {
	return Entry{
		Name: "zookeeper", Family: coordination,
		Summary: "ephemeral sequential node (go-zookeeper/zk)",
		Guarantees: "one buyer of a product at a time, while the session lives; first come, first served, between processes too. " +
			"A crashed process frees the lock when its session ends. The lease's context ends with the connection: from then on the session may end unseen",
		BreaksWhen:  "pause longer than the session",
		HowItBreaks: "A pause after the last check of the context and before the commit outlives the session. The session belongs to the process: all its leases are lost at once.",
		Cost:        "two writes to ZooKeeper's log a buy, the node and its deletion; a connection that is lost for a moment costs the sales under way",
		Source: `ZooKeeper documentation, "ZooKeeper Recipes and Solutions", Locks; Hunt et al., "ZooKeeper: Wait-free coordination for Internet-scale systems", USENIX ATC 2010, 2.4. ` +
			`The client is github.com/go-zookeeper/zk; its own Lock takes no context and leaves its node in line when the connection breaks at the wrong time`,
		Needs: []Need{NeedsZookeeper},
		New:   func(d Deps) purchase.Strategy { return NewZookeeper(d) },
		Traits: Traits{
			Path:     sizing.Path{SQL: 5, Lock: 3, RowSQL: 2, Keeps: sizing.All, TurnSQL: 5, TurnLock: 2, TurnCommits: 1, Nodes: sizing.OneLeader},
			Leased:   true,
			WaitsFor: ALock,
			Lock:     LockPromise{Renewed: true, SharedUnder: []promise.Condition{promise.LeaseRevoked}},
			CaughtBy: map[string]string{"ExpiredLease": twoHolders},
		},
	}.holdsBut(promise.Promise{promise.Pause: verdict.Oversold})
}

// NewZookeeper needs the database and ZooKeeper. The session's time-out, and
// so the life of a lease without its holder, was set when it was opened.
func NewZookeeper(d Deps) *Locked {
	return lease.NewLocked(d, "zookeeper", newZookeeperLocker(d))
}

type zookeeperLocker struct {
	session  *zookeeper.Session
	notified waiting.Notified
}

func newZookeeperLocker(d Deps) *zookeeperLocker {
	return &zookeeperLocker{d.Zookeeper, waiting.NewNotified(1)} // the next one's node is made while the holder sells
}

// dir has the nodes of a product's line. The nodes on the way are container
// nodes, which the server removes when they have been empty for a while:
// made-up product names leave nothing behind.
func (z *zookeeperLocker) dir(product string) string {
	return z.session.Root + "/shop-lock/p-" + url.PathEscape(product) // "p-": a node cannot be called ".."
}

func (z *zookeeperLocker) Lock(ctx context.Context, product string) (lease.Lease, error) {
	return z.notified.Obtain(ctx, product, func() (lease.Lease, error) { return z.queue(ctx, z.dir(product)) })
}

// queue stands in line once: waiting.ErrNotInLine when its node is gone after a wait.
// Unless it returns a lease it leaves no node.
func (z *zookeeperLocker) queue(ctx context.Context, dir string) (_ Lease, err error) {
	place := &zookeeperLease{locker: z, dir: dir, token: rand.Text()}
	defer func() {
		if err != nil {
			place.leave()
		}
	}()
	if err := place.join(); err != nil {
		return nil, deps.Failed(deps.Zookeeper, err)
	}
	for {
		// Asked before our node is seen: what is seen now is lost with this.
		place.lost = z.session.Doubt()
		ahead, err := place.ahead()
		if errors.Is(err, waiting.ErrNotInLine) {
			return nil, err
		}
		if err != nil {
			return nil, deps.Failed(deps.Zookeeper, err)
		}
		if ahead == "" {
			return place, nil
		}
		// Get and not Exists: of a node that has gone meanwhile Exists would
		// leave a watch behind that nothing ever fires.
		_, _, gone, err := z.session.Conn.GetW(dir + "/" + ahead)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, deps.Failed(deps.Zookeeper, err)
		}
		select {
		case <-gone: // deleted; or the session has expired, and then our node is gone too
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Reset deletes every node in line, of any buyer.
func (z *zookeeperLocker) Reset(ctx context.Context, product string) error {
	done := make(chan error, 1)
	go func() { done <- z.clear(z.dir(product)) }()
	select {
	case err := <-done:
		return deps.Failed(deps.Zookeeper, err)
	case <-ctx.Done():
		return deps.Failed(deps.Zookeeper, context.Cause(ctx))
	}
}

func (z *zookeeperLocker) clear(dir string) error {
	nodes, _, err := z.session.Conn.Children(dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	for _, node := range nodes {
		if err := z.session.Conn.Delete(dir+"/"+node, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return err
}

// A zookeeperLease is a place in line, and at its head the lease.
type zookeeperLease struct {
	locker *zookeeperLocker
	dir    string
	token  string
	node   string // TOKEN-NUMBER; "" while the answer to its creation is not there
	lost   <-chan struct{}
}

func (l *zookeeperLease) conn() *zk.Conn { return l.locker.session.Conn }

// join makes the node, and the nodes above it where they are missing.
func (l *zookeeperLease) join() error {
	acl := zk.WorldACL(zk.PermAll)
	for {
		path, err := l.conn().Create(l.dir+"/"+l.token+"-", nil, zk.FlagEphemeralSequential, acl)
		if err == nil {
			l.node = strings.TrimPrefix(path, l.dir+"/")
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		for i, c := range l.dir + "/" {
			if c != '/' || i == 0 {
				continue
			}
			_, err := l.conn().CreateContainer(l.dir[:i], nil, zk.FlagContainer, acl)
			if err != nil && !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
		}
	}
}

// ahead returns the node just before ours, "" when ours is the first, and
// waiting.ErrNotInLine when it is gone.
func (l *zookeeperLease) ahead() (string, error) {
	nodes, _, err := l.conn().Children(l.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	if !slices.Contains(nodes, l.node) {
		return "", waiting.ErrNotInLine
	}
	ahead := ""
	for _, node := range nodes {
		if number(node) < number(l.node) && (ahead == "" || number(node) > number(ahead)) {
			ahead = node
		}
	}
	return ahead, nil
}

// number is the end of a node's name: ten digits, so they compare as text.
func number(node string) string { return node[strings.LastIndexByte(node, '-')+1:] }

func (l *zookeeperLease) Token() string { return l.token }

func (l *zookeeperLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return lease.UntilLost(ctx, l.lost)
}

func (l *zookeeperLease) Release(ctx context.Context) error {
	select {
	case err := <-l.leave():
		if errors.Is(err, zk.ErrNoNode) {
			return lease.ErrNotHeld
		}
		return deps.Failed(deps.Zookeeper, err)
	case <-ctx.Done():
		return deps.Failed(deps.Zookeeper, context.Cause(ctx)) // and leave goes on
	}
}

// leave deletes the node. It must not give up while the session may live: a
// node that is forgotten in line stops everybody behind it. So it goes on by
// itself until ZooKeeper has answered or the session is closed.
func (l *zookeeperLease) leave() <-chan error {
	left := make(chan error, 1)
	go func() {
		for {
			err := l.remove()
			if !zookeeper.ConnectionLost(err) {
				left <- err
				return
			}
			select {
			case <-l.locker.session.Closed():
				left <- err
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return left
}

// remove deletes the node; zk.ErrNoNode when it is gone already. When the
// answer to its creation was lost, the token shows whether it was made.
func (l *zookeeperLease) remove() error {
	if l.node != "" {
		return l.conn().Delete(l.dir+"/"+l.node, -1)
	}
	// Another server than the one that was asked to make it may lag behind.
	if _, err := l.conn().Sync(l.dir); err != nil {
		return err
	}
	nodes, _, err := l.conn().Children(l.dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(nodes, func(node string) bool { return strings.HasPrefix(node, l.token+"-") })
	if i < 0 {
		return zk.ErrNoNode
	}
	return l.conn().Delete(l.dir+"/"+nodes[i], -1)
}
