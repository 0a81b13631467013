// Package zkline implements queues in ZooKeeper, one per product. A queue consists of ephemeral sequential
// nodes.
//
// It hides two problems that the recipe for a lock does not mention: missing parent nodes, and
// calls whose answer was lost.
package zkline

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
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
)

// A Line is the queue of a product: a node for each waiting buyer.
type Line struct {
	Dir     string // parent of the nodes
	session *zookeeper.Session
}

// Of returns the queue of a product. The nodes above the queue are container nodes, which the server
// removes after they have been empty for a while. So invented product names leave nothing behind.
func Of(session *zookeeper.Session, product string) Line {
	return Line{session.Root + "/shop-lock/p-" + url.PathEscape(product), session} // "p-", since ZooKeeper rejects the names "." and ".."
}

// Clear deletes every node of the queue, of any buyer.
func (l Line) Clear() error {
	nodes, _, err := l.session.Conn.Children(l.Dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	for _, node := range nodes {
		if err := l.session.Conn.Delete(l.Dir+"/"+node, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return err
}

// A Place is a buyer's node in a queue.
type Place struct {
	Line
	Token string // the prefix of the node's name
	node  string // TOKEN-NUMBER; "" until the answer to its creation arrives
}

// Join creates a node at the end of the queue. Leave must follow, also after an error.
func (l Line) Join() (*Place, error) {
	p := &Place{Line: l, Token: rand.Text()}
	acl := zk.WorldACL(zk.PermAll)
	for {
		path, err := l.session.Conn.Create(l.Dir+"/"+p.Token+"-", nil, zk.FlagEphemeralSequential, acl)
		if err == nil {
			p.node = strings.TrimPrefix(path, l.Dir+"/")
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return p, err
		}
		if err := l.makeParents(acl); err != nil {
			return p, err
		}
	}
}

func (l Line) makeParents(acl []zk.ACL) error {
	for i, c := range l.Dir + "/" {
		if c != '/' || i == 0 {
			continue
		}
		_, err := l.session.Conn.CreateContainer(l.Dir[:i], nil, zk.FlagContainer, acl)
		if err != nil && !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}

// Ahead returns the node just before the buyer's node, or "" if the buyer's node is the first. It
// returns waiting.ErrNotInLine if the buyer's node is gone.
func (p *Place) Ahead() (string, error) {
	nodes, _, err := p.session.Conn.Children(p.Dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	if !slices.Contains(nodes, p.node) {
		return "", waiting.ErrNotInLine
	}
	ahead := ""
	for _, node := range nodes {
		if number(node) < number(p.node) && (ahead == "" || number(node) > number(ahead)) {
			ahead = node
		}
	}
	return ahead, nil
}

// number returns the end of a node's name: ten digits, so numbers compare as text.
func number(node string) string { return node[strings.LastIndexByte(node, '-')+1:] }

// Gone returns a channel that becomes readable when the given node of the queue is deleted, or when
// the session has expired.
func (p *Place) Gone(node string) (<-chan zk.Event, error) {
	// GetW and not ExistsW: if the node is gone by now, ExistsW would leave a watch behind that never fires.
	_, _, gone, err := p.session.Conn.GetW(p.Dir + "/" + node)
	if errors.Is(err, zk.ErrNoNode) {
		already := make(chan zk.Event)
		close(already)
		return already, nil
	}
	return gone, err
}

// Leave deletes the node. It continues in the background until ZooKeeper has answered or the session is closed,
// since a remaining node would block all buyers after it. The answer is zk.ErrNoNode if the node was gone
// already.
func (p *Place) Leave() <-chan error {
	left := make(chan error, 1)
	go func() {
		for {
			err := p.remove()
			if !zookeeper.ConnectionLost(err) {
				left <- err
				return
			}
			select {
			case <-p.session.Closed():
				left <- err
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return left
}

// remove deletes the node. If the answer to its creation was lost, remove finds the node by its token.
func (p *Place) remove() error {
	if p.node != "" {
		return p.session.Conn.Delete(p.Dir+"/"+p.node, -1)
	}
	// The server that receives the deletion may lag behind the one that created the node.
	if _, err := p.session.Conn.Sync(p.Dir); err != nil {
		return err
	}
	nodes, _, err := p.session.Conn.Children(p.Dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(nodes, func(node string) bool { return strings.HasPrefix(node, p.Token+"-") })
	if i < 0 {
		return zk.ErrNoNode
	}
	return p.session.Conn.Delete(p.Dir+"/"+nodes[i], -1)
}

// Await returns the error from the channel `done`, or the cause of ctx if ctx ends first.
func Await(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
