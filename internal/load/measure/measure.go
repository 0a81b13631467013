// Package measure measures the sales per second of a running shop. Each buyer asks again when it is answered.
//
//	warm-up -> [ count the sales | read the processor time of all programs ] -> rates
//
// It does not judge the stock. Package rush does.
package measure

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/quantile"
	"github.com/oversell/oversell/internal/purchase"
)

// A Load is a closed loop of buyers: each buyer asks again as soon as it is answered.
type Load struct {
	URLs     []string // one for each shop process; buyers use them in turn
	Strategy string
	Product  string
	Buyers   int
	WarmUp   time.Duration // time whose sales do not count
	Duration time.Duration // time whose sales count, above 0
}

// A Round is the result of running a load once.
type Round struct {
	PerSecond float64       // sales per second
	P50, P99  time.Duration // median and 99th percentile of the time from request to answer, of successful buyers
	Refused   float64       // share of answers without a sale
	FirstNo   string        // the first answer without a sale; "" if there is none

	// Others is the number of processors that other programs used on average. The shop and its servers must be
	// children of this process, or they count as other programs. On systems other than Linux it is 0.
	Others float64
}

// Median returns the median of one number over all rounds, or 0 without rounds. The function `figure` selects
// the number.
func Median(rounds []Round, figure func(Round) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = figure(r)
	}
	slices.Sort(values)
	return quantile.Of(values, 0.5)
}

// Run sends the buyers and counts the sales. It returns an error if it cannot read the processor time, or if
// ctx ends.
func (l Load) Run(ctx context.Context) (Round, error) {
	begin := time.Now().Add(l.WarmUp)
	end := begin.Add(l.Duration)
	var beside errgroup.Group
	var others float64 // processor time of other programs, in milliseconds
	beside.Go(func() (err error) {
		if runtime.GOOS == "linux" {
			others, err = othersBetween(ctx, begin, end)
		}
		return err
	})
	var answers []buyers.Answer
	sender := buyers.Sender{URLs: l.URLs, Strategy: l.Strategy, Timeout: time.Minute, Answered: func(a buyers.Answer) { answers = append(answers, a) }}
	sender.Keep(ctx, buyers.Loop{
		Duration: l.WarmUp + l.Duration, Askers: l.Buyers,
		Buyer: func(n int64) buyers.Buyer {
			return buyers.Buyer{Name: fmt.Sprint("buyer-", n), Product: l.Product}
		},
	})
	if err := beside.Wait(); err != nil {
		return Round{}, err
	}
	r, refused := Round{Others: max(0, others) / float64(l.Duration.Milliseconds())}, 0
	var waits []time.Duration // waits of successful buyers
	for _, a := range answers {
		switch {
		case a.End.Before(begin) || a.End.After(end):
		case a.Outcome == purchase.Sold:
			waits = append(waits, a.AnswerBegan.Sub(a.Sent))
		default:
			refused++
			r.FirstNo = cmp.Or(r.FirstNo, a.Detail)
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
	return r, ctx.Err()
}

// othersBetween returns the processor time of all other programs from begin to end, in milliseconds.
func othersBetween(ctx context.Context, begin, end time.Time) (ms float64, _ error) {
	var others [2]float64
	for i, at := range []time.Time{begin, end} {
		select {
		case <-time.After(time.Until(at)):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		ours, err := CPUTime()
		if err != nil {
			return 0, err
		}
		machine, err := machineTime()
		if err != nil {
			return 0, err
		}
		others[i] = machine - ours
	}
	return others[1] - others[0], nil
}
