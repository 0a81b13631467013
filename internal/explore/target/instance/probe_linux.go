package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/pulse"
)

// A Probe sends buyers' requests to the programs outside of a schedule, while the gates are open and hold no commands.
// Each buyer has its own connection. The time for the answers is limited.
type Probe struct{ Instances *Instances }

// Told is the answer to one request of a probe.
type Told struct {
	Reply client.Reply
	Err   error
	Sent  bool // part of the request, or all of it, may have reached the program
	Late  bool // the answer did not come in time
}

// buyerPatience is added to the time limit of a burst for each buyer, since a program may serve them one by one.
const buyerPatience = 100 * time.Millisecond

// AskAll sends the requests of all buyers at once, and returns when every buyer is answered or the time is up. If the
// time is up, `undone` says so. The function `request` returns one of the requests in oversell.yaml by its number. If
// there are more buyers, the requests repeat.
func (d Probe) AskAll(ctx context.Context, buyers int, request func(id int) app.Request) (all []Told, undone string, err error) {
	asks := make([]func(context.Context) Told, buyers)
	for n := range asks {
		id := 1 + n%len(d.Instances.app.Buyers)
		if asks[n], err = d.asking(ctx, d.Instances.Of(id), request(id)); err != nil {
			return nil, "", err
		}
	}
	limit := d.Instances.Patience() + time.Duration(buyers)*buyerPatience
	bounded, cancel := pulse.WithTimeout(ctx, limit)
	defer cancel()
	all = make([]Told, buyers)
	var asked sync.WaitGroup
	for n, ask := range asks {
		asked.Go(func() { all[n] = ask(bounded) })
	}
	asked.Wait()
	late := 0
	for _, one := range all {
		if one.Late {
			late++
		}
	}
	if late > 0 {
		undone = fmt.Sprintf("%d of the buyers got no answer within %s", late, limit)
	}
	return all, undone, context.Cause(ctx)
}

// Ask sends a request to an instance, and waits for the answer.
func (d Probe) Ask(ctx context.Context, i *Instance, r app.Request) (Told, error) {
	ask, err := d.asking(ctx, i, r)
	if err != nil {
		return Told{}, err
	}
	ctx, cancel := pulse.WithTimeout(ctx, d.Instances.Patience())
	defer cancel()
	return ask(ctx), nil
}

// asking prepares a request to an instance. The returned function sends it on a new connection.
func (d Probe) asking(ctx context.Context, i *Instance, r app.Request) (func(context.Context) Told, error) {
	req, err := client.NewRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	address, err := client.HostPort(req.URL.String())
	if err != nil {
		return nil, err
	}
	dial, err := i.Network.Dialer(ctx, address)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) Told {
		c := buyers.NewClient(func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) })
		defer c.Close()
		answer := c.Send(ctx, req)
		return Told{
			Reply: client.Reply{Status: answer.Status, Body: string(answer.Body), Header: answer.Header}, Err: answer.Err, Sent: answer.Connected,
			Late: answer.Err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded),
		}
	}, nil
}
