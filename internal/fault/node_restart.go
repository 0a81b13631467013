package fault

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/lockstrategy"
)

// nodeRestart lets one node of the holder's bare majority come back empty: with
// the nodes that were cut off that is a majority for somebody else.
func nodeRestart() Fault {
	return Fault{Name: lockstrategy.NodeRestart, Stock: stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		how, err := s.holdBarely(ctx)
		if err != nil {
			return "", err
		}
		node := s.Servers.nodes[0]
		before, err := node.keys(ctx)
		if err != nil {
			return "", err
		}
		if err := node.forget(); err != nil {
			return "", err
		}
		s.struck("SIGKILL of one node, and back empty")
		after, err := node.keys(ctx)
		if err != nil {
			return "", err
		}
		s.next(ctx, s.Times.within())
		if err := s.release(); err != nil {
			return "", err
		}
		if before == 0 || after >= before {
			return "", missed("the node had %d keys before its restart and %d after it", before, after)
		}
		return fmt.Sprintf("the holder reported that it holds, %s; one of its nodes came back with %d of %d keys", how, after, before), nil
	}}
}
