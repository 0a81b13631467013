package serverstate

import (
	"context"
	"database/sql"
)

// A tableWait is a wait for a metadata lock. It has the waiting statement, and the number of metadata locks of the
// connection when the wait was first seen.
type tableWait struct {
	query int64
	had   int
}

// metadataLocks finds the connections of MariaDB or MySQL that wait for a metadata lock on a table. If the plugin
// METADATA_LOCK_INFO is installed, it also finds the metadata locks of each connection.
type metadataLocks struct {
	admin *sql.DB
	ask   string              // the query for waits for tables; "" before its first use
	lists bool                // METADATA_LOCK_INFO is installed; valid once ask is set
	waits map[int64]tableWait // the result of that query in the last call of waiting
}

// The queries for connections that wait for a metadata lock. They use the states in the server's file mdl.cc.
const (
	tableWaits     = " FROM information_schema.processlist p WHERE state LIKE 'Waiting for %metadata lock'"
	askTableWaits  = "SELECT id, 0, 0" + tableWaits
	tellTableWaits = "SELECT id, query_id, (SELECT COUNT(*) FROM information_schema.metadata_lock_info WHERE thread_id = p.id)" + tableWaits
)

// plugin checks, on its first call, whether MariaDB's METADATA_LOCK_INFO is installed.
func (d *metadataLocks) plugin(ctx context.Context) error {
	if d.ask != "" {
		return nil
	}
	const installed = "SELECT COUNT(*) > 0 FROM information_schema.plugins WHERE plugin_name = 'METADATA_LOCK_INFO' AND plugin_status = 'ACTIVE'"
	if err := d.admin.QueryRowContext(ctx, installed).Scan(&d.lists); err != nil {
		return err
	}
	if d.ask = askTableWaits; d.lists {
		d.ask = tellTableWaits
	}
	return nil
}

// waiting adds the connections that wait for a metadata lock. A LOCK TABLES waits for another LOCK TABLES or for a
// transaction that has used the table; a statement waits for a LOCK TABLES. A connection that gets the lock keeps its
// waiting state until its thread runs, but has one more lock than before. Only MariaDB's plugin METADATA_LOCK_INFO
// shows that. Without the plugin, the run is discarded if a connection was slow to wake.
func (d *metadataLocks) waiting(ctx context.Context, waiting map[int64]bool) error {
	if err := d.plugin(ctx); err != nil {
		return err
	}
	before := d.waits
	d.waits = map[int64]tableWait{}
	var id int64
	var now tableWait
	return each(ctx, d.admin, d.ask, []any{&id, &now.query, &now.had}, func() {
		first, known := before[id]
		if !known || first.query != now.query {
			first = now
		}
		d.waits[id] = first
		if now == first {
			waiting[id] = true
		}
	})
}

// held adds the named locks, and the table locks of connections without a transaction. (Other table locks end with
// their transaction.) Without the plugin, held adds no locks and returns false.
func (d *metadataLocks) held(ctx context.Context, held map[int64][]string) (listed bool, _ error) {
	if err := d.plugin(ctx); err != nil || !d.lists {
		return false, err
	}
	tables := map[int64][]string{}
	var id int64
	var kind, schema, table string
	err := each(ctx, d.admin, "SELECT DISTINCT thread_id, lock_type, table_schema, table_name FROM information_schema.metadata_lock_info WHERE lock_type IN ('User lock', 'Table metadata lock') ORDER BY 1, 2, 3, 4",
		[]any{&id, &kind, &schema, &table}, func() {
			if kind == "User lock" {
				held[id] = append(held[id], namedLock(schema))
			} else if len(held[id]) == 0 || held[id][0] != heldTransaction {
				tables[id] = append(tables[id], "a lock on table "+table)
			}
		})
	for id, locks := range tables {
		held[id] = append(held[id], locks...)
	}
	return err == nil, err
}
