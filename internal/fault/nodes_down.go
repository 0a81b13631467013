package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/history"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/purchase"
)

// nodesDown kills a minority of the nodes, under which buyers must get on, and
// then a majority, under which nobody may be granted half of a lock: who is, is
// stopped before its COMMIT while the nodes come back, empty, and they are
// enough for somebody else.
func nodesDown() Fault {
	return Fault{Name: promise.NodesDown, Stock: 2 * stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		all := len(s.Servers.nodes)
		few, most := s.Servers.nodes[:s.Servers.minority()], s.Servers.nodes[:s.Servers.minority()+1]
		s.afterwards(func(context.Context) error { return startAgain(most) })
		if err := kill(few); err != nil {
			return "", err
		}
		s.struck("SIGKILL of %d of %d nodes", len(few), all)
		under := count(s.crowd(ctx, "minority", 8, s.A, s.B), purchase.Sold)
		if err := kill(most); err != nil {
			return "", err
		}
		s.struck("SIGKILL of %d of %d nodes", len(most), all)
		granted, err := s.withoutMajority(ctx, most)
		if err != nil {
			return "", err
		}
		proof := fmt.Sprintf("%d of 8 buyers were sold a unit with %d of %d nodes killed; with %d killed %s", under, len(few), all, len(most), granted)
		if under == 0 {
			return proof, &stalledError{fmt.Sprintf("nobody could buy while %d of %d nodes were down", len(few), all)}
		}
		return proof, nil
	}}
}

// withoutMajority sends buyers while most nodes are down, and says what they got.
func (s *Scene) withoutMajority(ctx context.Context, most []*redisNode) (granted string, _ error) {
	for _, node := range most {
		select {
		case <-node.Done():
		default:
			return "", missed("a node runs after its SIGKILL")
		}
	}
	if err := s.arm(ctx, failpoint.Commit); err != nil {
		return "", err
	}
	s.send(ctx, s.A, holder)
	for i := range 3 {
		s.send(ctx, []*Shop{s.A, s.B}[i%2], fmt.Sprintf("majority-%d", i))
	}
	// Refused at once or when its patience is over, or granted what is no majority.
	e, _ := s.seen(ctx, s.Times.Wait+answerPatience, holder, history.Holding, history.Answered)
	if e.Kind != history.Holding {
		s.pending.Wait()
		sold := count(s.Answers(), purchase.Sold, "majority-0", "majority-1", "majority-2")
		return fmt.Sprintf("the holder was told %s, and %d of 3 others were sold a unit", e.Outcome, sold), nil
	}
	if err := startAgain(most); err != nil {
		return "", err
	}
	s.struck("%d nodes are back, empty, while somebody holds the others", len(most))
	s.next(ctx, s.Times.within())
	return "somebody was granted the lock", s.release()
}

func kill(nodes []*redisNode) error {
	var errs []error
	for _, node := range nodes {
		errs = append(errs, node.Kill())
	}
	return errors.Join(errs...)
}

// startAgain starts those of the nodes that were killed.
func startAgain(nodes []*redisNode) error {
	var errs []error
	for _, node := range nodes {
		select {
		case <-node.Done():
			errs = append(errs, node.Start())
		default:
		}
	}
	return errors.Join(errs...)
}
