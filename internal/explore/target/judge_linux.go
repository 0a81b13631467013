package target

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A judgement says how a run has ended, by the user's own queries.
type judgement struct{ *run }

// verdict judges the run.
func (r judgement) verdict(ctx context.Context) (verdict.Verdict, string, []witness.Finding, error) {
	sold, untold := 0, 0
	for _, b := range r.buyers {
		switch told := r.answeredBy(b) && b.err == nil; {
		case told && slices.Contains(r.x.app.Sold, b.reply.status):
			sold++
		case !told && b.crashed:
			untold++
		}
	}
	expired, err := r.x.expired(ctx)
	switch {
	case err != nil:
		return "", "", nil, err
	case expired != r.expired:
		return "", "", nil, voided("a key in Redis ran out by the clock", "%d of them; a lease is to end by an event", expired-r.expired)
	}
	who := r.deadEnd()
	found, err := r.x.servers.Never(ctx, sold)
	if app.Locked(err) && len(who) > 0 {
		return verdict.Stalled, whoWaits(who) + " for what nobody will do, and a lock keeps `never` from reading", nil, nil
	}
	if err != nil {
		return "", "", nil, err
	}
	// A buyer that crashed without an answer may have an order or none: no shop could do better.
	for more := 1; more <= untold && len(found) > 0; more++ {
		other, err := r.x.servers.Never(ctx, sold+more)
		if err != nil {
			return "", "", nil, err
		}
		if len(other) == 0 {
			found = nil
		}
	}
	if len(found) > 0 {
		findings := findingsOf(found)
		return verdict.Broken, witness.Why(findings), findings, nil
	}
	if len(who) > 0 {
		return verdict.Stalled, whoWaits(who) + " for what nobody will do", nil, nil
	}
	return verdict.Holds, "", nil, nil
}

// whoWaits is "buyer 1 waits", "buyers 1, 2 and 3 wait".
func whoWaits(ids []int) string {
	if len(ids) == 1 {
		return buyerNames(ids) + " waits"
	}
	return buyerNames(ids) + " wait"
}

// outcomes are what the buyers were told.
func (r judgement) outcomes() (all []witness.Outcome) {
	for _, b := range r.buyers {
		o := witness.Outcome{Buyer: b.id, Answer: "no answer"}
		switch {
		case b.crashed && (!r.answeredBy(b) || b.err != nil):
			o.Answer = "crashed"
		case !r.answeredBy(b):
		case b.err != nil:
			o.Error = b.err.Error()
		default:
			o.Answer = r.names.shown(b.reply.text())
		}
		all = append(all, o)
	}
	return all
}
