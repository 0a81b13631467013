package fault

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/plural"
)

// enoughInRush is the number of sales that a running rush, a burst of buyers, must have acknowledged before
// the kill. With fewer, a lost sale might go unnoticed.
const enoughInRush = 10

// dbKill kills the database with SIGKILL while buyers buy, and restarts it with its data. No acknowledged sale
// may be lost. In a cell (two shops of its own, no running rush) it kills the database again while a buyer is
// inside its COMMIT. This buyer's sale may be recorded or not.
//
// A SIGKILL destroys the memory of the process. Data that the process has written stays in the kernel, even if
// it is not on the disk. So dbKill finds a database that acknowledges a sale before it writes the COMMIT
// (trackrecord/planted/commit-not-flushed.patch), but it does not stand for a power failure.
func dbKill() Fault {
	return Fault{
		Name: "db-kill", About: "the database is killed under load and restarts with its data", Stock: 160,
		Lacks: func(e *engine.Engine) string {
			if e.Killable == nil {
				return "the database is not one server that the engine has started"
			}
			return ""
		},
		Inject: dbKillInCell, InRush: dbKillInRush,
	}
}

func killOf(db engine.Restartable) outage {
	return outage{
		server: "database", addresses: []string{db.Address()},
		lose: db.Kill, lost: "SIGKILL of the database", restore: db.Start, restored: "the database is back with its data",
	}
}

func dbKillInCell(ctx context.Context, t *Testbed) (string, error) {
	_, clustered := t.Servers.clustered()
	kill := killOf(t.Servers.db)
	kill.meanwhile = func(l *load) {
		l.awaitRefused(ctx)
		if clustered {
			goesOn(ctx, l)
			l.stop() // otherwise the stock is sold out before the database is back
		}
	}
	proof, err := kill.underLoad(ctx, t)
	if err != nil {
		return "", err
	}
	if clustered {
		if err := t.anew(ctx); err != nil {
			return "", err
		}
	}
	if err := warm(ctx, t, t.A); err != nil {
		return "", err
	}
	if _, err := t.hold(ctx, failpoint.Commit); err != nil {
		return "", err
	}
	gone, err := kill.inject(t, t.release)
	if err != nil {
		return "", err
	}
	if !gone {
		return "", missed("the database was there after its second SIGKILL")
	}
	return proof + "; it was killed again while the holder was inside its COMMIT", nil
}

func dbKillInRush(ctx context.Context, r *RunningRush) (string, error) {
	least := enoughInRush
	if r.InGroups { // one transaction may sell more than enoughInRush units, so the kill might interrupt no transaction
		least = 0
	}
	r.tally.await(ctx, least-r.tally.sold(), r.times.Wait)
	if r.tally.sold() < least && ctx.Err() == nil {
		return "", missed("fewer than %d units were sold before the crowd was gone or %s were over", least, r.times.Wait)
	}
	inside, err := r.hold(ctx, r.write)
	if err != nil {
		return "", err
	}
	sold, server := r.tally.sold(), r.Engine.Killable
	gone, err := killOf(server).inject(r, r.release) // the stopped buyer's COMMIT then finds a dead server
	if err != nil {
		return "", err
	}
	if !gone {
		return "", missed("the database was there after its SIGKILL")
	}
	return fmt.Sprintf("the database was killed after %s, with %s inside process 1, and %s was closed; then it was started again", plural.Count(sold, "sale"), plural.Count(inside, "buyer"), server.Address()), nil
}
