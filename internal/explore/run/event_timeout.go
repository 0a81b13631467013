package run

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// timeoutEvent: a buyer has waited in the database for long enough.
type timeoutEvent struct{}

func (timeoutEvent) Traits() Traits { return Traits{Name: "timeout", Tokens: "timeout[1-9]"} }

func (timeoutEvent) Choices(_ context.Context, r *Run) (all []Action, _ error) {
	for _, b := range r.buyers {
		if o := b.waits(); o != nil {
			all = append(all, Action{
				Choice: schedule.Choice{Token: fmt.Sprintf("timeout%d", b.id), Buyer: b.id, Name: "timeout", Touches: gate.SQL},
				op:     o, text: "its wait for the other's transaction times out",
			})
		}
	}
	return all, nil
}

// Strike ends the wait of a statement, in the database or at the gate.
func (timeoutEvent) Strike(ctx context.Context, r *Run, a Action) error {
	a.op.EndWait()
	if !r.buyers.flies(a.op) {
		return r.release(a.op, gate.TimeOut)
	}
	r.rest.unblocks = true
	return r.x.database.Interrupt(ctx, a.op.Conn())
}
