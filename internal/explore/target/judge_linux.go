package target

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A judgement decides the verdict of a run. It runs the queries of oversell.yaml after the run.
type judgement struct {
	app      *app.App
	servers  *app.Servers
	buyers   *client.Buyers
	names    *naming.Names
	leftover *leftover
	serial   *serialOracle // compares the run with serial runs; nil: the rules of `never` decide alone
	struck   bool          // the explorer has injected an event, such as a crash
	early    bool          // set by the method verdict: a buyer was refused while a unit was left
}

func (r *judgement) verdict(ctx context.Context) (verdict.Verdict, string, []witness.Finding, error) {
	told, failing, untold := r.told()
	left, err := r.leftover.why(ctx)
	if err != nil {
		return "", "", nil, err
	}
	who := r.buyers.Waiting()
	found, err := r.servers.Never(ctx, told)
	if app.Locked(err) && left != "" {
		return verdict.LeakedLock, left + ", which keeps `never` from reading", nil, nil
	}
	if app.Locked(err) && len(who) > 0 {
		return verdict.Stalled, whoWaits(who) + " forever, and a lock keeps `never` from reading", nil, nil
	}
	if err != nil {
		return "", "", nil, err
	}
	// A buyer that crashed without an answer may have bought or not. So the rules need to hold only for one possible
	// number of sales.
	for more := 1; more <= untold && len(found) > 0; more++ {
		other, err := r.servers.Never(ctx, app.Told{Sold: told.Sold + more, Failed: told.Failed})
		if err != nil {
			return "", "", nil, err
		}
		if len(other) == 0 {
			found = nil
		}
	}
	if len(found) > 0 {
		return verdict.Broken, witness.Why(found), found, nil
	}
	if left != "" && len(who) > 0 {
		left += "; " + whoWaits(who)
	}
	if left != "" {
		return verdict.LeakedLock, left, nil, nil
	}
	if len(who) > 0 {
		return verdict.Stalled, whoWaits(who) + " forever", nil, nil
	}
	if r.serial != nil {
		var findings []witness.Finding
		if findings, r.early, err = r.serial.judge(ctx, r.buyers, r.struck); err != nil {
			return "", "", nil, err
		}
		if len(findings) > 0 {
			return verdict.Broken, witness.Why(findings), findings, nil
		}
	}
	if len(failing) > 0 && !r.struck { // after an event, a failure may be the only possible answer
		return verdict.Failed, r.fails(failing) + ", and every server is healthy", nil, nil
	}
	return verdict.Holds, "", nil, nil
}

// whoWaits returns, for example, "buyer 1 waits" or "buyers 1, 2 and 3 wait".
func whoWaits(ids []int) string {
	if len(ids) == 1 {
		return naming.Buyers(ids) + " waits"
	}
	return naming.Buyers(ids) + " wait"
}

// told counts the answers. It returns the buyers that got a failure or no answer (`failing`), and the number of buyers
// that crashed without an answer (`untold`).
func (r judgement) told() (t app.Told, failing []int, untold int) {
	for _, b := range r.buyers.All {
		before := t.Failed
		switch reply, answered, err := r.buyers.Answer(b); {
		case b.Crashed && (!answered || err != nil):
			untold++
		case answered:
			client.Count(&t, reply, err, r.app)
		}
		if t.Failed > before {
			failing = append(failing, b.ID)
		}
	}
	return t, failing, untold
}

// fails describes the answers to these buyers, for example "buyer 2 was answered 500 error".
func (r judgement) fails(ids []int) string {
	var all []string
	for _, id := range ids {
		o := r.outcome(r.buyers.Of(id))
		if o.Error != "" {
			o.Answer = "nothing (" + o.Error + ")"
		}
		all = append(all, fmt.Sprintf("buyer %d was answered %s", id, o.Answer))
	}
	return strings.Join(all, ", ")
}

// withRefusals adds the refusals and failures to the details of a discarded run. They may explain it: after a 429 of a
// rate limiter, for example, a buyer sends no more commands.
func (r judgement) withRefusals(v schedule.Void) schedule.Void {
	for _, b := range r.buyers.All {
		if reply, answered, err := r.buyers.Answer(b); answered && err == nil && reply.Status >= http.StatusBadRequest {
			v.Details += fmt.Sprintf("; buyer %d was answered %s", b.ID, naming.Plain(reply.Text()))
		}
	}
	v.Details = strings.TrimPrefix(v.Details, "; ")
	return v
}

func (r judgement) outcomes() (all []witness.Outcome) {
	for _, b := range r.buyers.All {
		all = append(all, r.outcome(b))
	}
	return all
}

func (r judgement) outcome(b *client.Buyer) witness.Outcome {
	o := witness.Outcome{Buyer: b.ID, Answer: "no answer"}
	switch reply, answered, err := r.buyers.Answer(b); {
	case b.Crashed && (!answered || err != nil):
		o.Answer = "crashed"
	case !answered:
	case err != nil:
		o.Error = err.Error()
	default:
		o.Answer, o.Status = reply.Masked(r.names.Reply), reply.Status
	}
	return o
}
