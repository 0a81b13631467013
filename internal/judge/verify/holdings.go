package verify

import (
	"slices"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
)

// A Holding is the time in which a buyer believed that it held the lock, in milliseconds since the first event
// of the history.
type Holding struct {
	Purchaser string  `json:"purchaser"`
	Token     string  `json:"token,omitempty"`
	FromMS    float64 `json:"from_ms"`
	ToMS      float64 `json:"to_ms"`
	Ended     string  `json:"ended"` // how it ended: released, lost, not held, return, killed, or never
}

// Values of Holding.Ended besides the kinds of history events.
const (
	endedKilled  = "killed"
	endedNever   = "never"
	endedNotHeld = "not held" // the release reported that the lease was already lost
)

// An Overlap is a pair of buyers that held the lock at the same time.
type Overlap struct {
	First  Holding `json:"first"`
	Second Holding `json:"second"`
}

// A reading is a cell (one strategy under one condition) with the history of its run.
type reading struct {
	*Cell
	events []history.Event
}

// read takes two facts from the history that stock and records do not show. It finds buyers that held the lock
// at the same time, and the next sale to another buyer after the fault.
func (c reading) read() {
	holdings, start, struck := holdingsIn(c.events)
	for i, second := range holdings {
		for _, first := range holdings[:i] {
			if c.TwoHolders == nil && second.FromMS < first.ToMS && first.FromMS < second.ToMS && first.Purchaser != second.Purchaser {
				c.TwoHolders = &Overlap{first, second}
			}
		}
	}
	if struck.IsZero() {
		c.Evidence = c.evidence()
		return
	}
	at := float64(struck.Sub(start).Microseconds()) / 1000
	c.StruckMS = &at
	for _, e := range c.events {
		if e.Kind == history.Answered && e.Outcome == string(purchase.Sold) {
			c.Acknowledged++
		}
	}
	for _, e := range c.events {
		if e.Kind == history.Answered && e.Outcome == string(purchase.Sold) && e.Purchaser != "holder" && e.At.After(struck) {
			ms := e.At.Sub(struck).Milliseconds()
			c.NextSaleMS = &ms
			break
		}
	}
	c.Evidence = c.evidence()
}

// holdingsIn returns when each buyer believed that it held the lock. It also returns the times of the first
// event and of the first fault.
//
// A holding ends when the shop reports the release or the loss of the lease, or else when the purchase
// returns. If the shop reports none of these, it was killed, and the holding ends when the buyer's connection
// breaks. If only the buyer hangs up, the shop continues, and its later report counts.
func holdingsIn(events []history.Event) (holdings []Holding, start, struck time.Time) {
	if len(events) == 0 {
		return nil, start, struck
	}
	events = slices.Clone(events) // events of two processes and this one, sorted by the clock that they share
	slices.SortStableFunc(events, func(a, b history.Event) int { return a.At.Compare(b.At) })
	start = events[0].At
	ms := func(at time.Time) float64 { return float64(at.Sub(start).Microseconds()) / 1000 }
	open, last := map[string]int{}, map[string]int{} // purchaser to index in holdings
	for _, e := range events {
		switch e.Kind {
		case history.Struck:
			if struck.IsZero() {
				struck = e.At
			}
		case history.Acquired:
			open[e.Purchaser], last[e.Purchaser] = len(holdings), len(holdings)
			holdings = append(holdings, Holding{Purchaser: e.Purchaser, Token: e.Token, FromMS: ms(e.At), ToMS: ms(events[len(events)-1].At), Ended: endedNever})
		case history.Released, history.Lost, history.Return, history.Answered:
			i, holds := open[e.Purchaser]
			if !holds {
				if i, held := last[e.Purchaser]; held && e.Kind == history.Lost && holdings[i].Ended == string(history.Released) {
					holdings[i].Ended = endedNotHeld
				}
				continue
			}
			holdings[i].ToMS, holdings[i].Ended = ms(e.At), string(e.Kind)
			if e.Kind == history.Answered {
				holdings[i].Ended = endedKilled
				continue
			}
			delete(open, e.Purchaser)
		}
	}
	return holdings, start, struck
}
