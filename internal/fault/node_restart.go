package fault

import (
	"context"

	"github.com/oversell/oversell/internal/promise"
)

// nodeRestart lets one node of the holder's bare majority come back empty: with
// the nodes that were cut off that is a majority for somebody else.
func nodeRestart() Fault {
	return Fault{Name: promise.NodeRestart, Stock: stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		how, err := s.holdBarely(ctx)
		if err != nil {
			return "", err
		}
		node := s.Servers.nodes[0]
		before, err := node.keysOf(ctx, s.Product)
		if err != nil {
			return "", err
		}
		if err := node.forget(); err != nil {
			return "", err
		}
		s.struck("SIGKILL of one node, and back empty")
		after, err := node.keysOf(ctx, s.Product)
		if err != nil {
			return "", err
		}
		s.next(ctx, s.Times.within())
		if err := s.release(); err != nil {
			return "", err
		}
		proof, err := forgot("one of its nodes", before, after)
		return how + "; " + proof, err
	}}
}
