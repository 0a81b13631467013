package trial

import (
	"context"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/rush"
)

// Telling receives the progress of a rush, a series of bursts of buyers, from one goroutine.
type Telling struct {
	Answered func(w Wave, n int)              // called when n buyers of a wave (the burst for one strategy) have their answers
	Ended    func(w Wave, result rush.Result) // called after each wave; after an error the result is empty
	Warn     func(string)
}

// Play opens the storefront (the shops under test) on an engine, sends every wave, and returns the report. After an
// error, the report contains the results so far. `closed` is the error of closing the storefront, which does not
// affect the results. If a wave leaves a purchase or a lock behind, Play opens a new storefront for the next wave.
func (o *Crowd) Play(ctx context.Context, config engine.Config, token string, tell Telling) (report rush.Report, closed, err error) {
	front, err := Open(ctx, o, config, token, tell.Warn)
	if err != nil {
		return report, nil, err
	}
	defer func() { closed = front.Close() }()
	names, err := o.Names(front)
	if err != nil {
		return report, nil, err
	}
	report = o.Report(front)
	var growth rush.Growth
	defer func() { report.Growth = growth.Sentences() }()
	var strikes []string // descriptions of the faults injected in storefronts that were replaced
	leftBehind := false
	for wave := range o.Waves(names) {
		if leftBehind {
			strikes = append(strikes, front.Strikes()...)
			left := front
			front = &Storefront{}
			_ = left.Close() // this fails because of the lock or the purchase that was left behind
			opened, err := Open(ctx, o, config, token, tell.Warn)
			if err != nil {
				return report, nil, err
			}
			front = opened
		}
		result, err := front.Send(ctx, &wave.Crowd, wave.Strategy, Watching{Answered: func(n int) { tell.Answered(wave, n) }})
		report.Strikes = slices.Concat(strikes, front.Strikes())
		if err != nil {
			tell.Ended(wave, rush.Result{})
			return report, nil, fmt.Errorf("%s: %w", wave.Strategy, err)
		}
		tell.Ended(wave, result)
		leftBehind = result.LeftBehind()
		if o.For == 0 {
			report.Results = append(report.Results, result)
			continue
		}
		report.AddWave(wave.String(), result)
		if o.Target == "" {
			growth.Sample(ctx, front.URLs)
		}
	}
	return report, nil, nil
}
