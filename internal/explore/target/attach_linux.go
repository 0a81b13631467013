package target

import (
	"context"
	"errors"
	"fmt"

	"github.com/oversell/oversell/internal/explore/process"
)

// reachable says why nobody could see from here what is on its way to and from a process.
func reachable(pid int) error {
	own, err := process.SameNetwork(pid)
	if err == nil && !own {
		err = errors.New("it is in another network, a container's, where nobody sees from here what is on its way; start the container with --network host")
	}
	return err
}

// serving says why a program that runs already cannot be explored: it must be the one that
// answers the buyers, or another would be taken to rest.
func (x *Runner) serving(i *instance) error {
	for _, b := range x.app.Buyers {
		address, err := hostPort(b.URL)
		if err != nil {
			return err
		}
		serves, err := i.program.Serves(address)
		if err != nil {
			return fmt.Errorf("%s: %w", i.what(x), err)
		}
		if !serves {
			return fmt.Errorf("%s: it is not what listens at %s; give the pid of the program that does, or of one that has started it", i.what(x), address)
		}
	}
	return nil
}

// settled has a program that runs already forget the connections that it made before the
// gates were there: a pool finds out at the next request on each, which then fails.
func (x *Runner) settled(ctx context.Context) error {
	for range staleConnections {
		failed := false
		for n := range x.app.Buyers {
			if err := x.servers.Reset(ctx); err != nil {
				return err
			}
			x.floor.open()
			ask, err := x.asking(ctx, n+1)
			if err != nil {
				return err
			}
			answer := ask(ctx)
			failed = failed || answer.err != nil || answer.reply.failed()
		}
		if !failed {
			break
		}
	}
	return nil
}

// staleConnections are the most that a pool may have.
const staleConnections = 20
