package instance

import (
	"errors"
	"fmt"

	"github.com/oversell/oversell/internal/explore/process"
	"github.com/oversell/oversell/internal/explore/target/client"
)

// reachable returns why the traffic of a process cannot be seen from here.
func reachable(pid int) error {
	own, err := process.SameNetwork(pid)
	if err == nil && !own {
		err = errors.New("it is in another network, that of a container, which cannot be observed from here; start the container with --network host")
	}
	return err
}

// serving returns why a running program cannot be explored. The process must be the one that answers
// the buyers; otherwise the explorer would watch the wrong threads.
func serving(i *Instance) error {
	for _, b := range i.app.Buyers {
		address, err := client.HostPort(b.URL)
		if err != nil {
			return err
		}
		serves, err := i.Program.Serves(address)
		if err != nil {
			return fmt.Errorf("%s: %w", i.Label(), err)
		}
		if !serves {
			return fmt.Errorf("%s: it does not listen at %s; give the pid of the program that does, or of a process that started it", i.Label(), address)
		}
	}
	return nil
}
