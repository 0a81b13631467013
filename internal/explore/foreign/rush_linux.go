package foreign

import (
	"context"
	"slices"
	"sync"
)

// Rush sends so many requests at once, with the gates open, to the instances in turn, and
// asks the user's own queries then. The requests are the buyers' of the file, in turn.
func (x *Runner) Rush(ctx context.Context, buyers int) (c Crowd, err error) {
	x.floor.open()
	if err := x.servers.Reset(ctx); err != nil {
		return c, err
	}
	x.floor.mu.Lock()
	x.floor.rush = overlap{}
	x.floor.mu.Unlock()
	c.Buyers = buyers
	var mu sync.Mutex
	var all sync.WaitGroup
	for n := range buyers {
		id := n%len(x.app.Buyers) + 1
		all.Go(func() {
			answer, err := x.ask(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				c.Failed++
			case slices.Contains(x.app.Sold, answer.status):
				c.Sold++
			case failedAlone(answer):
				c.Failed++
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return c, context.Cause(ctx)
	}
	x.floor.mu.Lock()
	c.AtOnce = x.floor.rush.most
	x.floor.mu.Unlock()
	c.Broken, err = x.servers.Never(ctx, c.Sold)
	return c, err
}

// ask sends one buyer's request, on a connection of its own.
func (x *Runner) ask(ctx context.Context, id int) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, x.patience)
	defer cancel()
	req, err := x.request(ctx, x.app.Buyers[id-1])
	if err != nil {
		return reply{}, err
	}
	address, err := hostPort(req.URL.String())
	if err != nil {
		return reply{}, err
	}
	c, err := x.programOf(id).space.Dial(ctx, address)
	if err != nil {
		return reply{}, err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	return exchange(c, c, req)
}
