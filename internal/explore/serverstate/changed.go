package serverstate

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// smallTable is the maximum size, in pages, of a table that Changed reads.
const smallTable = 1000

// ChangedQuery returns the query for Changed. It leaves out tables of more than smallTable pages.
func ChangedQuery(ctx context.Context, db *sql.DB) (string, error) {
	var all []string
	var name, quoted string
	err := each(ctx, db, fmt.Sprintf(`SELECT lower(c.relname), format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'r' AND c.relpages < %d AND n.nspname NOT LIKE 'pg\_%%' AND n.nspname <> 'information_schema' AND has_table_privilege(c.oid, 'SELECT')`, smallTable),
		[]any{&name, &quoted}, func() {
			all = append(all, fmt.Sprintf("SELECT '%s' WHERE EXISTS (SELECT 1 FROM %s WHERE xmin::text::bigint >= $1)", strings.ReplaceAll(name, "'", "''"), quoted))
		})
	return strings.Join(all, " UNION ALL "), err
}

// NextTransaction returns the lowest transaction number that is not used yet, as Changed expects it.
func NextTransaction(ctx context.Context, db *sql.DB) (n int64, err error) {
	err = db.QueryRowContext(ctx, "SELECT txid_snapshot_xmax(txid_current_snapshot()) % 4294967296").Scan(&n)
	return n, err
}

// Changed returns the tables, in lower case, with a row that a transaction has inserted or updated. It considers
// transactions numbered `since` or higher. The query comes from ChangedQuery.
func Changed(ctx context.Context, db *sql.DB, query string, since int64) (tables []string, err error) {
	if query == "" {
		return nil, nil
	}
	var name string
	err = each(ctx, db, query, []any{&name}, func() { tables = append(tables, name) }, since)
	return tables, err
}

const catalogQuery = `SELECT concat_ws(' ', (SELECT count(*) || ':' || max(oid::bigint) FROM pg_trigger), (SELECT count(*) || ':' || max(oid::bigint) FROM pg_constraint),
	(SELECT count(*) || ':' || max(oid::bigint) FROM pg_rewrite), (SELECT count(*) || ':' || max(oid::bigint) FROM pg_attrdef),
	(SELECT count(*) || ':' || max(oid::bigint) FROM pg_policy), (SELECT count(*) || ':' || max(indexrelid::bigint) FROM pg_index))`

// CatalogState returns a text that differs after a trigger, view, rule, constraint, default, policy or index is added.
func CatalogState(ctx context.Context, db *sql.DB) (state string, err error) {
	err = db.QueryRowContext(ctx, catalogQuery).Scan(&state)
	return state, err
}

// Sequences returns the last value of each sequence of PostgreSQL, 0 for an unused one. The result `hidden` is true if
// the user lacks the privilege to read some sequence.
func Sequences(ctx context.Context, db *sql.DB) (last map[string]int64, hidden bool, err error) {
	last = map[string]int64{}
	var name string
	var value int64
	var unread bool
	err = each(ctx, db, `SELECT format('%I.%I', schemaname, sequencename), COALESCE(last_value, 0),
	NOT has_sequence_privilege(format('%I.%I', schemaname, sequencename), 'SELECT,USAGE') FROM pg_sequences`, []any{&name, &value, &unread}, func() {
		last[name], hidden = value, hidden || unread
	})
	return last, hidden, err
}
