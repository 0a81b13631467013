package soak

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// A crowd has the buyers of one wave. It counts their answers and keeps none, since a wave of minutes
// has millions.
type crowd struct {
	wave  Wave
	shops Shops
	meter *meter

	mu                       sync.Mutex
	answers                  Answers
	restockBegan, restockEnd time.Time // restock during the sale; zero before it
}

// pause is the wait of a buyer that was refused or found no shop.
const pause = 10 * time.Millisecond

// keep runs the buyers of the wave and returns when all are answered. When ctx ends, the waiting
// buyers hang up.
func (c *crowd) keep(ctx context.Context, product string, length, patience time.Duration) {
	sender := buyers.Sender{Strategy: c.wave.Strategy, Product: product, Timeout: patience, Answered: c.count}
	sender.Keep(ctx, buyers.Loop{Duration: length, Askers: c.wave.asking, Buyer: c.buyer, Pause: pause})
}

// buyer returns the next request of an asker: to its own process, or to the restocked one.
func (c *crowd) buyer(asker int, _ int64) buyers.Buyer {
	urls := c.shops.URLs() // a restarted process may have another URL
	process := asker % len(urls)
	if c.wave.kind.Restock {
		process = c.wave.Process
	}
	return buyers.Buyer{Name: fmt.Sprintf("soak-%d-%d", c.wave.Number, asker), URL: urls[process]}
}

// restock calls put and records when it began and ended.
func (c *crowd) restock(put func() error) error {
	c.mu.Lock()
	c.restockBegan = time.Now()
	c.mu.Unlock()
	err := put()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restockEnd = time.Now()
	return err
}

// count counts an answer.
func (c *crowd) count(answer buyers.Answer) {
	if answer.Outcome == purchase.Sold {
		c.meter.sold(answer.End.Sub(answer.Start))
	} else if answer.Status > 0 {
		c.meter.refused()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	isLast := !c.wave.kind.Restock || !c.restockEnd.IsZero() && answer.Start.After(c.restockEnd) // asked for the last stock
	a := &c.answers
	switch {
	case answer.Unreached:
		a.Unreached++
	case answer.Outcome == purchase.Sold && isLast:
		a.Sold++
	case answer.Outcome == purchase.Sold && (c.restockBegan.IsZero() || answer.End.Before(c.restockBegan)):
		a.Before++
	case answer.Outcome == purchase.Sold:
		a.Beside++
	case answer.Outcome == purchase.SoldOut:
		a.SoldOut++
		if isLast {
			a.Denied++
		}
	case answer.Outcome == purchase.Busy:
		a.Busy++
	case answer.Outcome == purchase.LockLost:
		a.LockLost++
	case answer.Outcome == purchase.Unknown:
		a.Unknown++
		if !answer.Sent.IsZero() {
			a.Sent++
		}
	default:
		a.Failed++
		if answer.Status == http.StatusServiceUnavailable {
			a.Down++
		} else if a.FirstError == "" {
			a.FirstError = answer.Detail
		}
	}
	if answer.Outcome != purchase.Sold && answer.Outcome != purchase.SoldOut && a.FirstNo == "" {
		a.FirstNo = answer.Detail
	}
}
