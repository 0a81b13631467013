package oracle

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
)

// MostRows is the maximum number of rows of a table, and of keys of a Redis, that is compared.
const MostRows = 10_000

// A Reader reads the data of the program's servers.
type Reader struct {
	MySQL, Postgres *sql.DB // nil: none
	Redis           redis.UniversalClient

	tables []source
	Large  []string // tables with more rows than MostRows, which are not compared
}

// A source is a table of a database.
type source struct {
	db      *sql.DB
	name    string // as in Data
	quoted  string
	columns []Column
}

// The queries of Open return the schema, the table, the column, whether the server generates its values,
// and the table and the column that it references, if any.
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

// Open reads which tables there are.
func (r *Reader) Open(ctx context.Context) error {
	for _, server := range []struct {
		db           *sql.DB
		query, quote string
	}{{r.MySQL, mysqlColumns, "`"}, {r.Postgres, postgresColumns, `"`}} {
		if server.db == nil {
			continue
		}
		if err := r.open(ctx, server.db, server.query, server.quote); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) open(ctx context.Context, db *sql.DB, query, quote string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	made := map[string]bool{}
	references := map[string]string{}
	first := len(r.tables)
	quoted := func(name string) string { return quote + strings.ReplaceAll(name, quote, quote+quote) + quote }
	for rows.Next() {
		var schema, table, column, parent, key string
		var generated bool
		if err := rows.Scan(&schema, &table, &column, &generated, &parent, &key); err != nil {
			return err
		}
		t := source{db: db, name: table, quoted: quoted(table)}
		if schema != "" {
			t.quoted = quoted(schema) + "." + quoted(table)
			if schema != "public" {
				t.name = schema + "." + table
			}
		}
		if n := len(r.tables); n == first || r.tables[n-1].name != t.name {
			r.tables = append(r.tables, t)
		}
		last := &r.tables[len(r.tables)-1]
		if !slices.ContainsFunc(last.columns, func(c Column) bool { return c.Name == column }) { // twice with two foreign keys
			last.columns = append(last.columns, Column{Name: column})
		}
		made[t.name+"."+column] = generated
		if parent != "" {
			references[t.name+"."+column] = parent + "." + key
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, t := range r.tables[first:] {
		for i, c := range t.columns {
			at := t.name + "." + c.Name
			for range len(references) { // a key may be a reference, too
				if next, is := references[at]; is && next != at {
					at = next
				}
			}
			if made[at] {
				t.columns[i].Key = at
			}
		}
	}
	return nil
}

// Read returns the content of the tables for which want is true, and of Redis. A nil want wants all.
func (r *Reader) Read(ctx context.Context, want func(table string) bool) (Data, error) {
	all := Data{}
	for _, t := range r.tables {
		if slices.Contains(r.Large, t.name) || want != nil && !want(t.name) {
			continue
		}
		rows, err := t.read(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if len(rows) > MostRows {
			r.Large = append(r.Large, t.name)
			continue
		}
		all[t.name] = &Table{t.columns, rows}
	}
	if r.Redis == nil {
		return all, nil
	}
	keys, err := readRedis(ctx, r.Redis)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	all[redisTable] = &Table{[]Column{{Name: "key"}, {Name: "value"}}, keys}
	return all, nil
}

func (t source) read(ctx context.Context) (all [][]string, _ error) {
	rows, err := t.db.QueryContext(ctx, fmt.Sprintf("SELECT * FROM %s LIMIT %d", t.quoted, MostRows+1)) //nolint:gosec // the name is quoted
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]any, len(names))
	for i := range values {
		values[i] = new(any)
	}
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			return nil, err
		}
		line := make([]string, len(t.columns))
		for i, c := range t.columns {
			if at := slices.Index(names, c.Name); at >= 0 {
				line[i] = text(*values[at].(*any))
			}
		}
		all = append(all, line)
	}
	return all, rows.Err()
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return Null
	case []byte:
		if !utf8.Valid(v) {
			return hex.EncodeToString(v)
		}
		return string(v)
	case time.Time:
		return v.Format("2006-01-02 15:04:05.999999999Z07:00")
	}
	return fmt.Sprint(v)
}

// redisTable is the table of Data with the keys of Redis.
const redisTable = "redis"

// readRedis returns the keys of a database of Redis and their values. The time to live is not compared.
func readRedis(ctx context.Context, c redis.UniversalClient) (all [][]string, _ error) {
	var names []string
	for cursor := uint64(0); ; {
		some, next, err := c.Scan(ctx, cursor, "*", 1000).Result()
		if err != nil {
			return nil, err
		}
		if names = append(names, some...); len(names) > MostRows {
			return nil, fmt.Errorf("it has more than %d keys", MostRows)
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		value, err := redisValue(ctx, c, name)
		if err != nil {
			return nil, err
		}
		all = append(all, []string{name, value})
	}
	return all, nil
}

func redisValue(ctx context.Context, c redis.UniversalClient, name string) (string, error) {
	kind, err := c.Type(ctx, name).Result()
	if err != nil {
		return "", err
	}
	switch kind {
	case "string":
		value, err := c.Get(ctx, name).Result()
		return value, ignoreNil(err)
	case "list":
		values, err := c.LRange(ctx, name, 0, -1).Result()
		return strings.Join(values, " "), err
	case "set":
		values, err := c.SMembers(ctx, name).Result()
		slices.Sort(values)
		return strings.Join(values, " "), err
	case "zset":
		members, err := c.ZRangeWithScores(ctx, name, 0, -1).Result()
		return fmt.Sprint(members), err
	case "hash":
		fields, err := c.HGetAll(ctx, name).Result()
		return fmt.Sprint(fields), err // sorted by key
	case "stream":
		entries, err := c.XRange(ctx, name, "-", "+").Result()
		var all []string
		for _, e := range entries { // the id is a time
			all = append(all, fmt.Sprint(e.Values))
		}
		return strings.Join(all, " "), err
	}
	return kind, nil
}

// ignoreNil ignores a key that has just expired.
func ignoreNil(err error) error {
	if err == redis.Nil { //nolint:errorlint // the client returns it as it is
		return nil
	}
	return err
}
