package serverstate

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Tables are the tables and views of a database by name, in lower case and without schema. Tables with the same
// name in several schemas share one entry.
type Tables map[string]*Table

// A Table lists what else a statement may touch if it names the table.
type Table struct {
	// View reports that the table is a view, without rows of its own.
	View bool
	// Opaque reports that a statement that names the table may touch any table: it is a view or a foreign
	// table, or it has a policy.
	Opaque bool
	// Fires reports that a change of the table may touch any table: it has a trigger, a rule, or a user-defined
	// function in a default, a check or an index.
	Fires bool
	// Reads are the tables that this table references: a change of this table checks their rows.
	Reads []string
	// Deletes and Updates are the tables that reference this table with CASCADE, SET NULL or SET DEFAULT. They also
	// change when its rows are deleted (Deletes), or when its keys change (Updates).
	Deletes, Updates []string
	// Parts are the table's partitions, children and parents, which have the same rows.
	Parts []string
}

// errHidden reports that the user lacks the privilege to see the triggers.
// CatalogTimeout limits the queries for the catalog, since a program under test may have left a lock on which they wait.
const CatalogTimeout = 5 * time.Second

var errHidden = errors.New("the user may not see the triggers of all tables")

// The queries of ReadTables. Those for tables return the table's name, and whether the table is a view, is opaque for
// another reason, and fires (as in Table). Those for foreign keys return the table, the referenced table, and two
// flags: whether the table's rows change when the referenced row is deleted, and when its key changes.
const (
	mysqlTriggers = `SELECT EXISTS (SELECT 1 FROM information_schema.user_privileges WHERE privilege_type = 'TRIGGER' AND grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), ''''))
	OR EXISTS (SELECT 1 FROM information_schema.schema_privileges WHERE privilege_type = 'TRIGGER' AND table_schema = DATABASE() AND grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), ''''))`
	mysqlTables = `SELECT LOWER(t.table_name), t.table_type <> 'BASE TABLE', COALESCE(t.engine, '') NOT IN ('InnoDB', 'MyISAM', 'Aria', 'MEMORY', 'ROCKSDB'),
	EXISTS (SELECT 1 FROM information_schema.triggers g WHERE g.event_object_schema = t.table_schema AND g.event_object_table = t.table_name)
	FROM information_schema.tables t WHERE t.table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')`
	mysqlKeys = `SELECT LOWER(table_name), LOWER(referenced_table_name), delete_rule NOT IN ('RESTRICT', 'NO ACTION'), update_rule NOT IN ('RESTRICT', 'NO ACTION')
	FROM information_schema.referential_constraints`

	postgresTables = `SELECT lower(c.relname), c.relkind NOT IN ('r', 'p'), c.relrowsecurity,
	c.relhasrules OR EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
	OR EXISTS (SELECT 1 FROM pg_depend d JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
		WHERE p.pronamespace <> 'pg_catalog'::regnamespace
		AND NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
		AND (d.classid = 'pg_attrdef'::regclass AND d.objid IN (SELECT oid FROM pg_attrdef WHERE adrelid = c.oid)
			OR d.classid = 'pg_constraint'::regclass AND d.objid IN (SELECT oid FROM pg_constraint WHERE conrelid = c.oid)
			OR d.classid = 'pg_class'::regclass AND d.objid IN (SELECT indexrelid FROM pg_index WHERE indrelid = c.oid)))
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'`
	postgresKeys = `SELECT lower(c.relname), lower(r.relname), k.confdeltype IN ('c', 'n', 'd'), k.confupdtype IN ('c', 'n', 'd')
	FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class r ON r.oid = k.confrelid WHERE k.contype = 'f'`
	postgresParts = `SELECT lower(c.relname), lower(p.relname) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
	WHERE p.relkind IN ('r', 'p')`
)

// ReadTables reads the tables of a database. The protocol is "mysql" or "postgres". In MySQL, it fails for a user
// without the privilege TRIGGER.
func ReadTables(ctx context.Context, db *sql.DB, protocol string) (Tables, error) {
	all := Tables{}
	tables, keys, parts := postgresTables, postgresKeys, postgresParts
	if protocol == "mysql" {
		tables, keys, parts = mysqlTables, mysqlKeys, ""
		var may bool
		if err := db.QueryRowContext(ctx, mysqlTriggers).Scan(&may); err != nil || !may {
			return nil, errors.Join(err, errHidden)
		}
	}
	r := reader{ctx: ctx, db: db}
	var name, other string
	var view, opaque, fires, deletes, updates bool
	r.each(tables, func() {
		one := all.at(name)
		one.View = one.View || view
		one.Opaque = one.Opaque || opaque || view
		one.Fires = one.Fires || fires
	}, &name, &view, &opaque, &fires)
	r.each(keys, func() {
		all.at(name).Reads = append(all.at(name).Reads, other)
		if deletes {
			all.at(other).Deletes = append(all.at(other).Deletes, name)
		}
		if updates {
			all.at(other).Updates = append(all.at(other).Updates, name)
		}
	}, &name, &other, &deletes, &updates)
	if parts != "" {
		r.each(parts, func() {
			all.at(name).Parts = append(all.at(name).Parts, other)
			all.at(other).Parts = append(all.at(other).Parts, name)
		}, &name, &other)
	}
	return all, r.err
}

// at returns a table, after adding it if it is new.
func (t Tables) at(name string) *Table {
	if t[name] == nil {
		t[name] = &Table{}
	}
	return t[name]
}

// A reader runs queries, one after the other, until one of them fails.
type reader struct {
	ctx context.Context
	db  *sql.DB
	err error // the error of the query that has failed
}

// each runs a query, scans each row into the given variables, and calls do.
func (r *reader) each(query string, do func(), into ...any) {
	if r.err == nil {
		r.err = each(r.ctx, r.db, query, into, do)
	}
}

// each runs a query with args, scans each row into the given variables, and then calls do.
func each(ctx context.Context, db *sql.DB, query string, into []any, do func(), args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	return scanAll(rows, into, do)
}

// scanAll scans each row into the given variables, calls do, and closes the rows.
func scanAll(rows *sql.Rows, into []any, do func()) error {
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		do()
	}
	return rows.Err()
}
