package soak

import (
	"fmt"

	"github.com/oversell/oversell/internal/judge/audit"
)

// Answers counts the answers to the buyers of a wave. A sale during a restock may have its record or
// not, since the restock clears records.
type Answers struct {
	Sold      int64  `json:"sold"`             // must have a record; after the restock, if the wave has one
	Before    int64  `json:"before,omitempty"` // sold before the restock cleared the records
	Beside    int64  `json:"beside,omitempty"` // sold during the restock
	SoldOut   int64  `json:"sold_out"`
	Denied    int64  `json:"-"` // refusals of buyers that asked for the last stock
	Busy      int64  `json:"busy"`
	LockLost  int64  `json:"lock_lost"`
	Failed    int64  `json:"failed"`
	Down      int64  `json:"down,omitempty"`     // part of Failed: the answer named an unavailable server (503)
	Unknown   int64  `json:"unknown"`            // the sale may have been made: 504, or a connection that broke
	Sent      int64  `json:"-"`                  // part of Unknown: the request was sent, so the buyer may have been inside
	Unreached int64  `json:"unreached"`          // no connection, so no request was sent
	FirstNo   string `json:"first_no,omitempty"` // first answer except sold and sold out

	FirstError string `json:"first_error,omitempty"` // detail of the first error in Failed, except those in Down
}

// Sales returns the number of acknowledged sales.
func (a Answers) Sales() int64 { return a.Sold + a.Before + a.Beside }

// Refusals returns the number of answers that denied a sale.
func (a Answers) Refusals() int64 { return a.SoldOut + a.Busy + a.LockLost + a.Failed }

// Judge compares the answers to the buyers of a wave with stock and records. Call it after all
// answers. void says why a wave showed nothing. A wave with violations is never void.
//
// A buyer with outcome unknown may have a record or not. Every acknowledged sale has exactly one.
func Judge(w Wave, a Answers, r audit.Report) (violations []string, void string) {
	wrong := func(format string, args ...any) { violations = append(violations, fmt.Sprintf(format, args...)) }
	if r.Stocked != w.Stock {
		wrong("%d units were put on sale, and the audit says %d", w.Stock, r.Stocked)
	}
	if r.Drift != 0 {
		wrong("drift %+d: %d sold and %d left of %d", r.Drift, r.UnitsSold, r.Leftover, r.Stocked)
	}
	if r.Oversold > 0 {
		wrong("%d units sold of %d", r.UnitsSold, r.Stocked)
	}
	most := a.Sold + a.Beside + a.Unknown
	if r.Records < a.Sold {
		wrong("lost: %d sales were answered, and there are %d records", a.Sold, r.Records)
	}
	if r.Records > most {
		wrong("%d records, and the answers permit %d (%d sold, %d during the restock, %d unknown)", r.Records, most, a.Sold, a.Beside, a.Unknown)
	}
	if errors := a.Failed - a.Down; errors > 0 && !w.kind.Kill {
		wrong("failed: %d buyers were answered with an error, although no fault was injected; the first: %s", errors, a.FirstError)
	}
	// A buyer that took units and returned them may have held all that were left for a while.
	certain := !w.kind.Kill && a.Unknown+a.Failed+a.Busy+a.LockLost == 0
	if a.Denied > 0 && r.Leftover > 0 && certain {
		wrong("%d buyers were told that it is sold out, and %d units are left", a.Denied, r.Leftover)
	}
	if len(violations) > 0 {
		return violations, ""
	}
	return nil, voidOf(w, a, r)
}

// voidOf says what the wave failed to show, or returns "".
func voidOf(w Wave, a Answers, r audit.Report) string {
	why := ""
	switch {
	case a.Sales() == 0:
		why = "nothing was sold"
	case a.Down > 0 && !w.kind.Kill:
		why = fmt.Sprintf("%d buyers were told that a server is down", a.Down)
	case w.kind.Restock && a.Before+a.Beside == 0:
		why = "nothing was sold before the restock"
	case w.kind.Restock && r.Records == 0: // buyers that the restock held back may have bought all new units
		why = "nothing was sold after the restock"
	case w.kind.Short && a.SoldOut == 0:
		why = "no buyer was told that it is sold out"
	case w.kind.Kill && a.Sent == 0:
		why = "no buyer was inside the process that was killed"
	}
	if why != "" && a.FirstNo != "" {
		why += "; the first answer except sold and sold out: " + a.FirstNo
	}
	return why
}
