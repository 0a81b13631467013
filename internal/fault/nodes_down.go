package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// nodesDown kills a minority of the nodes, under which buyers must get on, and
// then a majority, under which nobody may be sold anything by half of a lock.
func nodesDown() Fault {
	return Fault{Name: lockstrategy.NodesDown, Stock: 2 * stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		few := s.Servers.nodes[:s.Servers.minority()]
		most := s.Servers.nodes[:s.Servers.minority()+1]
		s.afterwards(func(context.Context) error {
			var errs []error
			for _, node := range most {
				select {
				case <-node.Done():
					errs = append(errs, node.Start())
				default: // it was not killed
				}
			}
			return errors.Join(errs...)
		})
		for _, node := range few {
			if err := node.Kill(); err != nil {
				return "", err
			}
		}
		s.struck("SIGKILL of %d of %d nodes", len(few), len(s.Servers.nodes))
		under := s.crowd(ctx, "minority", 8, s.A, s.B)
		if _, err := s.A.nodes[0].roundTrip(200 * time.Millisecond); err == nil {
			return "", missed("a node answers after its SIGKILL")
		}
		if err := most[len(most)-1].Kill(); err != nil {
			return "", err
		}
		s.struck("SIGKILL of %d of %d nodes", len(most), len(s.Servers.nodes))
		without := s.crowd(ctx, "majority", 4, s.A, s.B)
		proof := fmt.Sprintf("%d of 8 buyers were sold a unit with %d of %d nodes killed, and %d of 4 with %d killed",
			count(under, purchase.Sold), len(few), len(s.Servers.nodes), count(without, purchase.Sold), len(most))
		if count(under, purchase.Sold) == 0 {
			return proof, &stalledError{fmt.Sprintf("nobody could buy while %d of %d nodes were down", len(few), len(s.Servers.nodes))}
		}
		return proof, nil
	}}
}

func count(answers []Answer, outcome purchase.Outcome) (n int) {
	for _, a := range answers {
		if a.Outcome == outcome {
			n++
		}
	}
	return n
}
