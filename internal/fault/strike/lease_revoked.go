package strike

import (
	"context"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/promise"
)

// leaseRevoked takes the lease away from a buyer that is between its read and its write, and
// whose process runs on: an operator revokes it. Its client is told, and its section must end.
func leaseRevoked() Fault {
	return Fault{
		Name: promise.LeaseRevoked, About: "ZooKeeper or etcd takes the lease away from a buyer that holds, whose process runs on",
		Cannot: func(e *engine.Engine) string {
			if !slices.ContainsFunc(e.LockServers, coordinates) {
				return "the engine has started neither ZooKeeper nor etcd"
			}
			return ""
		},
		Strike: func(ctx context.Context, f *Field) (string, error) {
			release, err := f.holdAt(ctx, failpoint.Read)
			if err != nil {
				return "", err
			}
			defer release()
			proof, err := fault.Revoke(ctx, f.Engine.LockServers, f.Needs, f.Product)
			if err != nil {
				return "", err
			}
			sold, err := f.besideHeld(ctx) // its client has been told by then
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("a buyer of process 1 was stopped before its write; %s; its process answered, and %d units were sold before it went on", proof, sold), nil
		},
	}
}

func coordinates(s engine.LockServer) bool {
	return slices.Contains(promise.Struck(promise.LeaseRevoked), s.Need)
}
