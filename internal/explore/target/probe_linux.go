package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/load/buyers"
)

// A probe sends buyers' requests to the programs outside of a schedule, with the gates open. Each buyer
// has a connection of its own. The probe bounds the time for the answers.
type probe struct {
	instances *instances
	patience  time.Duration
}

// told is the answer to one buyer of a burst.
type told struct {
	reply reply
	err   error
	sent  bool // part of the request may have reached the program
	late  bool // its time was up
}

// buyerPatience is added to a burst's time for each buyer, since a program may serve them one by one.
const buyerPatience = 100 * time.Millisecond

// askAll sends all requests at once. It returns when every buyer is answered or the time is up. In the
// latter case undone says so.
func (d probe) askAll(ctx context.Context, buyers int) (all []told, undone string, err error) {
	asks := make([]func(context.Context) told, buyers)
	for n := range asks {
		if asks[n], err = d.asking(ctx, n%len(d.instances.app.Buyers)+1); err != nil {
			return nil, "", err
		}
	}
	limit := d.patience + time.Duration(buyers)*buyerPatience
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all = make([]told, buyers)
	var asked sync.WaitGroup
	for n, ask := range asks {
		asked.Go(func() { all[n] = ask(bounded) })
	}
	asked.Wait()
	late := 0
	for _, one := range all {
		if one.late {
			late++
		}
	}
	if late > 0 {
		undone = fmt.Sprintf("%d of the buyers got no answer within %s", late, limit)
	}
	return all, undone, context.Cause(ctx)
}

// asking prepares a buyer's request, and returns a function that sends it on a new connection.
func (d probe) asking(ctx context.Context, id int) (func(context.Context) told, error) {
	return d.askingOf(ctx, d.instances.of(id), d.instances.app.Buyers[id-1])
}

// askingOf prepares a request to an instance.
func (d probe) askingOf(ctx context.Context, i *instance, r app.Request) (func(context.Context) told, error) {
	req, err := request(ctx, r)
	if err != nil {
		return nil, err
	}
	address, err := hostPort(req.URL.String())
	if err != nil {
		return nil, err
	}
	dial, err := i.space.Dialer(ctx, address)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) told {
		client := buyers.NewClient(func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) })
		defer client.Close()
		answer := client.Send(ctx, req)
		return told{
			reply: reply{answer.Status, string(answer.Body)}, err: answer.Err, sent: answer.Connected,
			late: answer.Err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded),
		}
	}, nil
}
