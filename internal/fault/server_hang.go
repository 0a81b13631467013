package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/plural"
	"github.com/oversell/oversell/internal/purchase"
)

// serverHang stops the lock servers with SIGSTOP. Connections stay open, and requests stay in the kernel: that of
// a lock holder, which releases its lock now, and those of buyers that come and give up. Then the servers run
// on. A server may still execute a request whose client has gone.
//
// If the strategy needs no lock server, the fault stops the database instead, while one buyer is inside its COMMIT.
func serverHang() Fault {
	return Fault{
		Name: "server-hang", About: "the lock servers, or the database if there are none, hang (SIGSTOP) until buyers give up",
		OnRedis: topology.Single, Stock: stock, Inject: hang,
	}
}

// requestTime is how long the holder's request may take to the servers. It must be the first there: a DEL after
// the SETNX of a buyer that gave up would free that buyer's lock.
const requestTime = 200 * time.Millisecond

type freezer interface {
	Freeze() error
	Thaw() error
}

func hang(ctx context.Context, t *Testbed) (string, error) {
	servers, at := t.hanging()
	inside := ""
	if at == failpoint.Commit || locks(t.Log) {
		if _, err := t.hold(ctx, at); err != nil {
			return "", err
		}
		inside = fmt.Sprintf(", when a buyer was about to send its %s", at)
	}
	t.afterwards(func(context.Context) error { return each(servers, freezer.Thaw) })
	if err := each(servers, freezer.Freeze); err != nil {
		return "", err
	}
	t.injected("SIGSTOP of %s", plural.Count(len(servers), "server"))
	if inside != "" {
		if err := t.release(); err != nil {
			return "", err
		}
		if _, went := seen(ctx, t, t.Times.Wait, holder, history.Resumed); !went {
			return "", missed("the holder did not go on while the servers hung")
		}
		pauseFor(ctx, requestTime)
	}
	came := make([]string, 4)
	for i := range came {
		came[i] = fmt.Sprintf("patient-%d", i)
		t.buyers.send(ctx, t.shops()[i%2], came[i])
	}
	gaveUp := 0
	for _, buyer := range came {
		if e, ok := seen(ctx, t, t.Times.Wait+answerMargin/2, buyer, history.Answered); ok && e.Outcome != string(purchase.Sold) {
			gaveUp++
		}
	}
	if err := each(servers, freezer.Thaw); err != nil {
		return "", err
	}
	t.injected("SIGCONT of %s", plural.Count(len(servers), "server"))
	t.buyers.wait()
	after, err := overlap(ctx, t)
	if err != nil {
		return "", err
	}
	if gaveUp == 0 {
		return "", missed("no buyer gave up while the servers hung")
	}
	return fmt.Sprintf("%s stopped with open connections%s; %d of %d buyers gave up before the servers ran on; %s",
		plural.Count(len(servers), "server"), inside, gaveUp, len(came), after), nil
}

// hanging returns the servers that hang, and where the holder is stopped before.
func (t *Testbed) hanging() (servers []freezer, at failpoint.Point) {
	for _, server := range t.lockServers() {
		servers = append(servers, server.Restartable.(freezer)) // each is a process
	}
	if len(servers) > 0 {
		return servers, failpoint.Release
	}
	c, ok := t.Servers.clustered()
	if !ok {
		return []freezer{t.Servers.db}, failpoint.Commit
	}
	for _, node := range c.Nodes() {
		servers = append(servers, node)
	}
	t.afterwards(func(ctx context.Context) error { return awaitWhole(ctx, c) })
	return servers, failpoint.Commit
}
