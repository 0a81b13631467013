package serverstate

import (
	"context"
	"fmt"
)

// postgresHeld lists advisory locks and transactions. A transaction holds a lock on its virtual id and, once it has
// locked or written a row, on its id (PostgreSQL 15 manual, 54.12). A failed transaction holds neither, but its
// connection refuses statements.
const postgresHeld = `SELECT pid, locktype, COALESCE(classid::bigint, 0), COALESCE(objid::bigint, 0), COALESCE(objsubid, 0) FROM pg_locks
	WHERE granted AND (locktype = 'advisory' OR locktype IN ('virtualxid', 'transactionid') AND mode = 'ExclusiveLock')
	UNION SELECT pid, 'failed', 0, 0, 0 FROM pg_stat_activity WHERE state = 'idle in transaction (aborted)'
	ORDER BY 1, 2 DESC, 3, 4`

// Held implements Connections. It ignores names, since the server lists all advisory locks.
func (d *postgresConnections) Held(ctx context.Context, _ []string) (map[int64][]string, error) {
	held := map[int64][]string{}
	var id, high, low, parts int64
	var kind string
	err := each(ctx, d.admin, postgresHeld, []any{&id, &kind, &high, &low, &parts}, func() {
		what := map[string]string{"virtualxid": heldTransaction, "transactionid": heldRows, "failed": "a failed transaction"}[kind]
		switch {
		case what != "":
		case parts == 1: // one key of 64 bits, otherwise two keys of 32 bits
			what = fmt.Sprintf("advisory lock %d", high<<32|low)
		default:
			what = fmt.Sprintf("advisory lock (%d, %d)", int32(high), int32(low))
		}
		held[id] = append(held[id], what)
	})
	if err != nil {
		return nil, fmt.Errorf("ask what connections hold: %w", err)
	}
	return held, nil
}
