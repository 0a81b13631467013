package fault

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
)

// serverHang stops the lock servers with SIGSTOP. Connections stay open, and requests wait in the kernel. Buyers
// come and give up. Then the servers continue and execute these requests, although the clients have given up.
//
// If the strategy needs no lock server, the fault stops the database instead, while one buyer is inside its COMMIT.
func serverHang() Fault {
	return Fault{
		Name: "server-hang", About: "the lock servers, or the database if there are none, hang (SIGSTOP) until buyers give up, then execute their requests",
		OnRedis: topology.Single, Stock: stock, Inject: hang,
	}
}

type freezer interface {
	Freeze() error
	Thaw() error
}

func hang(ctx context.Context, t *Testbed) (string, error) {
	var servers []freezer
	for _, server := range t.lockServers() {
		servers = append(servers, server.Restartable.(freezer)) // faults start each server as a process, which can be stopped
	}
	inside := ""
	if len(servers) == 0 {
		servers = []freezer{t.Servers.db}
		inside = ", and a buyer was inside its COMMIT"
		if c, ok := t.Servers.clustered(); ok {
			servers = nil
			for _, node := range c.Nodes() {
				servers = append(servers, node)
			}
			t.afterwards(func(ctx context.Context) error { return awaitWhole(ctx, c) })
		}
		if _, err := t.hold(ctx, failpoint.Commit); err != nil {
			return "", err
		}
	}
	t.afterwards(func(context.Context) error { return each(servers, freezer.Thaw) })
	if err := each(servers, freezer.Freeze); err != nil {
		return "", err
	}
	t.injected("SIGSTOP of %s", audit.Count(len(servers), "server"))
	if err := t.release(); err != nil { // the buyer then sends its COMMIT to a database that does not answer
		return "", err
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
	t.injected("SIGCONT of %s", audit.Count(len(servers), "server"))
	t.buyers.wait()
	if err := overlap(ctx, t); err != nil {
		return "", err
	}
	if gaveUp == 0 {
		return "", missed("no buyer gave up while the servers hung")
	}
	return fmt.Sprintf("%s stopped with open connections%s; %d of %d buyers gave up before the servers ran on", audit.Count(len(servers), "server"), inside, gaveUp, len(came)), nil
}
