package trial

import (
	"context"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/linear"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// Watching receives the progress of a strategy's crowd (its burst of buyers). Its functions may be nil.
type Watching struct {
	Answered func(n int)
	Judged   func(rush.Result) // the crowd's own result, before Restocks adds to it

	mended func(context.Context) error // waits until the servers work again after a fault
	byHand func() bool                 // whether the live page has injected faults into this strategy's crowds
}

func (o *Crowd) rush(ctx context.Context, bed *Storefront, name string, watch Watching) (rush.Result, error) {
	config := rush.Config{
		BaseURLs: bed.URLs, Shelf: bed.Target, Auditor: bed.Auditor,
		Strategy: name, Product: o.Product, Stock: o.Stock, Buyers: o.Buyers, Sizes: o.Units, Duration: o.Duration,
		Timeout:     o.Shops.Settings.Wait + rush.Silence,
		AwaitRepair: watch.mended, Send: o.Send,
		Progress: func(answered int) {
			if watch.Answered != nil {
				watch.Answered(answered)
			}
		},
	}
	if o.Target == "" {
		config.Healthy = bed.Engine == engine.Embedded || bed.Engine == engine.Local
		config.Wait, config.Lease = o.Shops.Settings.Wait, o.Shops.Settings.LeaseTTL
		config.Inside = InsideOf(name, bed.Database)
		config.LetsWait = config.Healthy && LetsWait(o.Shops.Admission, bed.Database)
		entry, _ := lockstrategy.ByName(lockstrategy.Resolve(name))
		config.Counts = linear.CountsOf(entry.AdmitsFirst, entry.LeftLags, entry.WritesLater)
	} else { // the maximum wait inside the service is unknown
		config.Timeout *= 2
	}
	if o.Target != "" || o.Shops.Admission { // otherwise buyers do not return: without admission control, our shops must let them wait
		config.Patience = o.Shops.Settings.Wait
	}
	byHand := func() bool { return watch.byHand != nil && watch.byHand() }
	config.FaultTookEffect, config.CannotRepeat = func() bool { return o.Fault != "" || byHand() }, byHand
	promised := o.promised(bed, name)
	result, err := verdict.Confirm(func() (rush.Result, error) {
		r, err := crowd(ctx, o, config)
		if o.Expect && !byHand() {
			r.Promise = promised
		}
		return r, err
	})
	if entry, ok := lockstrategy.ByName(lockstrategy.Resolve(name)); ok {
		for _, c := range entry.Breaks(bed.Database) {
			result.BreaksUnder = append(result.BreaksUnder, string(c))
		}
	}
	switch {
	case err == nil && byHand(): // no promise applies if a user injects a fault at any moment, with leases of any length
		result.Promise = ""
		result.Reason += "; a fault was injected by hand, so no promise applies"
		watch.Judged(result)
		return result, nil
	case err == nil:
		if watch.Judged != nil {
			result.Promise = promised
			watch.Judged(result)
		}
		if o.Fault != "" {
			config.Lease = max(config.Lease, config.Wait) // a lock damaged by a fault may be kept for a buyer's whole wait
		}
		config.FaultTookEffect, result.Promise = nil, ""
		if result.Verdict == verdict.Holds {
			result, err = verdict.Confirm(func() (rush.Result, error) { return rush.Restocks(ctx, config, result, o.Restocks) })
		}
	}
	result.Promise = promised
	if why := o.whyUntested(bed, result); why != "" && promised.Misses(result.Verdict) {
		result.Verdict, result.Reason = verdict.Inconclusive, why+": "+result.Reason
	}
	if why := o.whyNoPromise(bed, name); promised == "" && why != "" && result.Verdict != verdict.Holds {
		result.Reason += "; no promise is made: " + why
	}
	return result, err
}

// InsideOf says which buyers may be buying while one of our shops restocks.
func InsideOf(strategy, database string) rush.Inside {
	entry, _ := lockstrategy.ByName(lockstrategy.Resolve(strategy))
	switch {
	case dialect.Kind(database) == dialect.Galera: // the nodes of a cluster differ while buyers buy
		return rush.NoBuyers
	case entry.RestocksAnytime(database):
		return rush.AllBuyers
	}
	return rush.OwnBuyers
}

// LetsWait reports whether our shops let each buyer wait for its maximum wait. They do unless admission
// control is on, or the database is a cluster, in which a node may lag behind a buyer's lock.
func LetsWait(admission bool, database string) bool {
	return !admission && dialect.Kind(database) != dialect.Galera
}

func crowd(ctx context.Context, o *Crowd, config rush.Config) (rush.Result, error) {
	if o.Second == "" {
		return rush.Run(ctx, config)
	}
	return rush.RunProducts(ctx, config, []string{o.Product, o.Second}, []int64{o.Stock - o.Stock/2, o.Stock / 2})
}

// whyUntested says why this crowd could not show the break that is promised under its fault. It returns "" if
// the crowd could show it, or if there was no fault.
func (o *Crowd) whyUntested(bed *Storefront, r rush.Result) string {
	switch {
	case o.Fault == "":
	case r.Taken > 0 && int64(r.Crowd-r.Taken) <= o.Stock:
		return "the buyers that the fault left asked for no more than the stock"
	case pointOf(bed.Database) == failpoint.Read:
		return "on SQLite, a buyer is stopped after its read, where a strategy may still notice that it has lost its lock"
	}
	return ""
}
