package fault

import (
	"context"
)

// nodeRestart kills one node of the holder's bare majority, which comes back empty.
// With the nodes that were cut off, that is a majority for somebody else.
func nodeRestart() Fault {
	return Fault{
		Name: "node-restart", About: "one Redlock node of a bare majority comes back empty",
		Needs: redlockNodes(), Stock: stock,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			how, err := holdBarely(ctx, t)
			if err != nil {
				return "", err
			}
			node := t.Servers.nodes[0]
			before, err := node.keysOf(ctx, t.Product)
			if err != nil {
				return "", err
			}
			if err := node.forget(); err != nil {
				return "", err
			}
			t.struck("SIGKILL of one node, and back empty")
			after, err := node.keysOf(ctx, t.Product)
			if err != nil {
				return "", err
			}
			sendNext(ctx, t, t.Times.within())
			if err := t.release(); err != nil {
				return "", err
			}
			proof, err := forgot("one of its nodes", before, after)
			return how + "; " + proof, err
		},
	}
}
