// Package measure measures the sales per second of a running shop with a closed loop of buyers, and
// the processor time of a sale in each process.
//
//	warm-up -> [ count the sales | read the processor time of all children ] -> rates
//
// It does not judge the stock; rush does. The shop and its servers must be children of this process,
// since it reads only their processor time.
package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/quantile"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/purchase"
)

// A Load is one closed loop: each buyer asks again as soon as it is answered.
type Load struct {
	URLs     []string // one for each shop process; buyers use them in turn
	Strategy string
	Products []string // each request asks for a random one
	Buyers   int
	WarmUp   time.Duration // not counted
	Duration time.Duration // counted, above 0
	CPU      bool          // also read the processor time; Linux only

	// Ask measures the servers during the load; may be nil.
	Ask func(context.Context) (sizing.Servers, error)
}

// A Round is the result of a load.
type Round struct {
	PerSecond float64       // sales
	P50, P99  time.Duration // from request to answer, of successful buyers
	Refused   float64       // share of answers without a sale
	CPU       sizing.CPU
	Others    float64        // processors that other programs used
	Servers   sizing.Servers // zero without Load.Ask
	FirstNo   string         // the first answer without a sale; "" if there is none
}

// Median returns the median of a figure of the rounds, or 0 without rounds.
func Median(rounds []Round, figure func(Round) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = figure(r)
	}
	slices.Sort(values)
	return quantile.Of(values, 0.5)
}

// Run sends the buyers. It returns an error if it cannot read the processor time, or if ctx ends.
func (l Load) Run(ctx context.Context) (Round, error) {
	begin := time.Now().Add(l.WarmUp)
	end := begin.Add(l.Duration)
	var (
		beside errgroup.Group
		cpu    sizing.CPU // of the whole time
		all    float64    // of the whole machine
		asked  sizing.Servers
	)
	beside.Go(func() (err error) {
		if l.CPU {
			cpu, all, err = between(ctx, begin, end)
		}
		return err
	})
	beside.Go(func() (err error) {
		if l.Ask != nil {
			asked, err = l.Ask(ctx)
		}
		return err
	})
	var answers []buyers.Answer
	sender := buyers.Sender{URLs: l.URLs, Strategy: l.Strategy, Timeout: time.Minute, Answered: func(a buyers.Answer) { answers = append(answers, a) }}
	sender.Keep(ctx, buyers.Loop{
		Duration: l.WarmUp + l.Duration, Askers: buyers.Constant(l.Buyers),
		Buyer: func(_ int, n int64) buyers.Buyer {
			return buyers.Buyer{Name: fmt.Sprint("buyer-", n), Product: l.Products[rand.IntN(len(l.Products))]}
		},
	})
	if err := beside.Wait(); err != nil {
		return Round{}, err
	}
	r, refused := Round{Servers: asked}, 0
	var waits []time.Duration // of successful buyers
	for _, a := range answers {
		switch {
		case a.End.Before(begin) || a.End.After(end):
		case a.Outcome == purchase.Sold:
			waits = append(waits, a.AnswerBegan.Sub(a.Sent))
		default:
			refused++
			if r.FirstNo == "" {
				r.FirstNo = a.Detail
			}
		}
	}
	sales := len(waits)
	if sales+refused > 0 {
		r.Refused = float64(refused) / float64(sales+refused)
	}
	if sales == 0 {
		return r, ctx.Err()
	}
	slices.Sort(waits)
	r.P50, r.P99 = quantile.Of(waits, 0.5), quantile.Of(waits, 0.99)
	r.PerSecond = float64(sales) / l.Duration.Seconds()
	r.CPU = perSale(cpu, sales)
	r.Others = max(0, all-cpu.Total()) / float64(l.Duration.Milliseconds())
	return r, ctx.Err()
}

// between returns the processor time from begin to end of our processes and of the whole machine, in
// milliseconds.
func between(ctx context.Context, begin, end time.Time) (ours sizing.CPU, all float64, _ error) {
	var used [2]sizing.CPU
	var machine [2]float64
	for i, at := range []time.Time{begin, end} {
		select {
		case <-time.After(time.Until(at)):
		case <-ctx.Done():
			return ours, 0, ctx.Err()
		}
		var err error
		if used[i], err = CPUTime(); err != nil {
			return ours, 0, err
		}
		if machine[i], err = machineTime(); err != nil {
			return ours, 0, err
		}
	}
	return sizing.CPU{
		Database: used[1].Database - used[0].Database, Shop: used[1].Shop - used[0].Shop,
		Locks: used[1].Locks - used[0].Locks, Buyers: used[1].Buyers - used[0].Buyers,
	}, machine[1] - machine[0], nil
}

func perSale(c sizing.CPU, sales int) sizing.CPU {
	n := float64(sales)
	return sizing.CPU{Database: c.Database / n, Shop: c.Shop / n, Locks: c.Locks / n, Buyers: c.Buyers / n}
}
