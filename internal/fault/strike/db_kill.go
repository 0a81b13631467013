package strike

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/promise"
)

// enough sales must have been acknowledged before the database is killed.
const enough = 10

// dbKill kills the database while buyers are inside, and starts it again with its data.
func dbKill() Fault {
	return Fault{
		Name: promise.DBKill, About: "SIGKILL of the database while buyers are inside, then back with its data",
		Cannot: func(e *engine.Engine) string {
			if e.Killable == nil {
				return "the database is not one server that the engine has started"
			}
			return ""
		},
		Strike: func(ctx context.Context, f *Field) (string, error) {
			if err := f.awaitSales(ctx, enough); err != nil { // so that a lost one could be found
				return "", err
			}
			release, err := f.hold(ctx)
			if err != nil {
				return "", err
			}
			inside, sold := f.under()
			server := f.Engine.Killable
			if err := server.Kill(); err != nil {
				release()
				return "", err
			}
			release() // its COMMIT meets a server that is gone
			conn, gone := net.DialTimeout("tcp", server.Address(), time.Second)
			if gone == nil {
				_ = conn.Close()
			}
			if err := server.Start(); err != nil {
				return "", fmt.Errorf("start the database again: %w", err)
			}
			if gone == nil {
				return "", missed("the database was there after its SIGKILL")
			}
			return fmt.Sprintf("the database was killed after %d sales, with %d buyers inside process 1, and nobody listened at %s; then it was started again", sold, inside, server.Address()), nil
		},
	}
}
