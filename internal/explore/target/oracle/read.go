package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// MostRows is the maximum size at which a table (in rows) or Redis (in keys) is compared.
const MostRows = 10_000

// Servers are the program's servers, reached directly, without the gates that hold commands. app.Servers implements it.
type Servers interface {
	// Addresses returns the servers' addresses, by protocol.
	Addresses() map[string]string
	// Rows returns the rows of a query as text. The parameter `most` is their maximum number.
	Rows(ctx context.Context, protocol, query string, most int) (columns []string, rows [][]string, _ error)
	// Keys returns each key of Redis with its value. If there are more keys than `most`, it returns an error.
	Keys(ctx context.Context, most int) ([][]string, error)
}

// A Reader reads the data of the program's servers.
type Reader struct {
	servers Servers
	tables  []source
	Large   []string // tables with more rows than MostRows, which are not compared
}

type source struct {
	protocol string
	name     string // the key in Data
	quoted   string
	columns  []Column
}

// The queries of Open return one row for each column. It has the schema, the table and the column, whether the server
// generates the column's values (1 or true), and the table and the column that it references, if any.
const (
	mysqlColumns = `SELECT IF(c.table_schema = DATABASE(), '', c.table_schema), c.table_name, c.column_name, c.extra LIKE '%auto_increment%',
	COALESCE(CONCAT(IF(k.referenced_table_schema = DATABASE(), '', CONCAT(k.referenced_table_schema, '.')), k.referenced_table_name), ''), COALESCE(k.referenced_column_name, '')
	FROM information_schema.columns c JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name AND t.table_type = 'BASE TABLE'
	LEFT JOIN information_schema.key_column_usage k ON k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name AND k.referenced_table_name IS NOT NULL
	WHERE c.table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') ORDER BY c.table_schema, c.table_name, c.ordinal_position`
	postgresColumns = `SELECT n.nspname, c.relname, a.attname,
	a.attidentity <> '' OR COALESCE(pg_get_expr(d.adbin, d.adrelid) ~ '^(nextval\(|gen_random_uuid\(\)|uuid_generate_v4\(\))', false),
	COALESCE((SELECT CASE WHEN rn.nspname = 'public' THEN '' ELSE rn.nspname || '.' END || r.relname FROM pg_class r JOIN pg_namespace rn ON rn.oid = r.relnamespace WHERE r.oid = f.confrelid), ''),
	COALESCE((SELECT b.attname FROM pg_attribute b WHERE b.attrelid = f.confrelid AND b.attnum = f.confkey[array_position(f.conkey, a.attnum)]), '')
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
	LEFT JOIN LATERAL (SELECT * FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'f' AND a.attnum = ANY (k.conkey) LIMIT 1) f ON true
	WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema' AND has_table_privilege(c.oid, 'SELECT')
	ORDER BY n.nspname, c.relname, a.attnum`
)

const mostColumns = 100_000

// Open finds out which tables exist.
func Open(ctx context.Context, servers Servers) (*Reader, error) {
	r := &Reader{servers: servers}
	for _, database := range []struct{ protocol, query, quote string }{{"mysql", mysqlColumns, "`"}, {"postgres", postgresColumns, `"`}} {
		if servers.Addresses()[database.protocol] == "" {
			continue
		}
		_, columns, err := servers.Rows(ctx, database.protocol, database.query, mostColumns)
		if err != nil {
			return nil, err
		}
		r.tables = append(r.tables, sources(database.protocol, columns, func(name string) string {
			return database.quote + strings.ReplaceAll(name, database.quote, database.quote+database.quote) + database.quote
		})...)
	}
	return r, nil
}

// sources makes the tables of one database from the rows of its query.
func sources(protocol string, columns [][]string, quoted func(string) string) (all []source) {
	made, references := map[string]bool{}, map[string]string{}
	for _, c := range columns {
		schema, table, column, generated, parent, key := c[0], c[1], c[2], c[3], c[4], c[5]
		t := source{protocol: protocol, name: table, quoted: quoted(table)}
		if schema != "" {
			t.quoted = quoted(schema) + "." + quoted(table)
			if schema != "public" {
				t.name = schema + "." + table
			}
		}
		if n := len(all); n == 0 || all[n-1].name != t.name {
			all = append(all, t)
		}
		last := &all[len(all)-1]
		if !slices.ContainsFunc(last.columns, func(c Column) bool { return c.Name == column }) { // a column with two foreign keys has two rows in the result
			last.columns = append(last.columns, Column{Name: column})
		}
		made[t.name+"."+column] = generated == "1" || generated == "true"
		if parent != "" {
			references[t.name+"."+column] = parent + "." + key
		}
	}
	for _, t := range all {
		for i, c := range t.columns {
			at := t.name + "." + c.Name
			for range len(references) { // follow the references, since the referenced key may itself be a reference
				if next, is := references[at]; is && next != at {
					at = next
				}
			}
			if made[at] {
				t.columns[i].Key = at
			}
		}
	}
	return all
}

// Read returns the content of the tables for which `want` is true, and of Redis. If `want` is nil, it returns all
// tables.
func (r *Reader) Read(ctx context.Context, want func(table string) bool) (Data, error) {
	all := Data{}
	for _, t := range r.tables {
		if slices.Contains(r.Large, t.name) || want != nil && !want(t.name) {
			continue
		}
		rows, err := r.read(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if len(rows) > MostRows {
			r.Large = append(r.Large, t.name)
			continue
		}
		all[t.name] = &Table{t.columns, rows}
	}
	if r.servers.Addresses()["redis"] == "" {
		return all, nil
	}
	keys, err := r.servers.Keys(ctx, MostRows)
	all[redisTable] = &Table{[]Column{{Name: "key"}, {Name: "value"}}, keys}
	return all, err
}

// redisTable is the name of the table in Data that has the keys of Redis.
const redisTable = "redis"

// read returns the rows of a table. Their columns have the order of t.columns, which a migration may have changed
// since.
func (r *Reader) read(ctx context.Context, t source) (all [][]string, _ error) {
	names, rows, err := r.servers.Rows(ctx, t.protocol, "SELECT * FROM "+t.quoted, MostRows+1)
	for _, values := range rows {
		line := make([]string, len(t.columns))
		for i, c := range t.columns {
			if at := slices.Index(names, c.Name); at >= 0 {
				line[i] = values[at]
			}
		}
		all = append(all, line)
	}
	return all, err
}
