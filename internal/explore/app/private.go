package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

func (s *Servers) startPrivate() (urls map[string]string, err error) {
	if s.private, err = localserver.NewGroup(); err != nil {
		return nil, err
	}
	urls = map[string]string{}
	if s.app.MySQL != nil {
		if s.mysql, err = localserver.StartMySQL(s.private); err != nil {
			return nil, fmt.Errorf("local: %w", err)
		}
		urls["mysql"], s.addresses["mysql"] = s.mysql.URL(), s.mysql.Addr
	}
	if s.app.Postgres != nil {
		if s.postgres, err = localserver.StartPostgres(s.private); err != nil {
			return nil, fmt.Errorf("local: %w", err)
		}
		urls["postgres"], s.addresses["postgres"] = s.postgres.URL(), s.postgres.Addr
	}
	if s.app.Redis != nil {
		r, err := localserver.StartRedis(s.private)
		if err != nil {
			return nil, fmt.Errorf("local: %w", err)
		}
		urls["redis"], s.addresses["redis"] = r.URL(), r.Addr
		if u, err := url.Parse(s.app.Redis.URL); err == nil {
			urls["redis"] += u.Path // the database number for flushdb
		}
	}
	return urls, nil
}

// firstID is the first id of new rows on a private server. It is so high that no other number looks
// like an id.
const firstID = 1_000_001

// prepare loads the schema. It also allows a login without a password. Commits do not wait for the disk,
// since Close deletes the server's files anyway.
func (s *Servers) prepare(ctx context.Context, urls map[string]string) (err error) {
	var schema []script
	if s.app.Schema != "" {
		if schema, err = readSchema(s.app.Schema); err != nil {
			return err
		}
	}
	if s.app.MySQL != nil {
		database, err := prepareMySQL(ctx, s.SQL("mysql"), s.mysql, schema)
		if err == nil {
			err = s.follow(ctx, "mysql", urls["mysql"], database)
		}
		if err != nil {
			return err
		}
	}
	if s.app.Postgres != nil {
		database, err := preparePostgres(ctx, s.SQL("postgres"), s.postgres, schema)
		if err == nil {
			err = s.follow(ctx, "postgres", urls["postgres"], database)
		}
		if err != nil {
			return err
		}
	}
	return s.Renumber(ctx)
}

// follow reconnects to another database, if the schema's scripts have changed to it.
func (s *Servers) follow(ctx context.Context, protocol, text, database string) error {
	u, err := url.Parse(text)
	if err != nil || database == "" || "/"+database == u.Path {
		return err
	}
	u.Path = "/" + database
	if err := errors.Join(s.databases[protocol].Close(), s.watchers[protocol].Close()); err != nil {
		return err
	}
	versions := s.versions
	defer func() { s.versions = versions }()
	if protocol == "mysql" {
		return s.openMySQL(ctx, u.String())
	}
	return s.openPostgres(ctx, u.String())
}

// Renumber makes the ids of new rows begin at a high number, on private servers. Call it again after a
// command that creates tables.
func (s *Servers) Renumber(ctx context.Context) error {
	if !s.app.Local {
		return nil
	}
	if s.app.MySQL != nil {
		if err := renumber(ctx, s.SQL("mysql"),
			// leaves out columns that are too small for firstID
			`SELECT table_name, IF(data_type = 'mediumint', 8388607, 2147483647), COALESCE(auto_increment, 0)
			FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
			WHERE table_schema = DATABASE() AND extra LIKE '%auto_increment%' AND data_type NOT IN ('tinyint', 'smallint') ORDER BY 1`,
			"ALTER TABLE `%s` AUTO_INCREMENT = %d"); err != nil {
			return err
		}
	}
	if s.app.Postgres != nil {
		if _, err := s.SQL("postgres").ExecContext(ctx, firstTransaction); err != nil {
			return err
		}
		return renumber(ctx, s.SQL("postgres"),
			fmt.Sprintf(`SELECT quote_ident(schemaname) || '.' || quote_ident(sequencename), max_value, COALESCE(last_value, 0) FROM pg_sequences
			WHERE max_value > %d ORDER BY 1`, firstID),
			"ALTER SEQUENCE %s RESTART WITH %d")
	}
	return nil
}

// firstTransaction gives the next transactions numbers of four digits or more.
const firstTransaction = "DO $$ BEGIN WHILE txid_current() < 1000 LOOP COMMIT; END LOOP; END $$"

// idsPerTable is the distance between the first ids of two tables. Otherwise rows of two tables could
// have the same id in some runs and different ids in others.
const idsPerTable = 1_000_000

// renumber sets the first id of new rows, and chooses a different one for each table as long as the numbers
// suffice. The SQL `query` returns the name, the greatest possible id and the last id of each table or sequence.
// The SQL `statement` sets the first id of one of them. renumber skips a table whose last id is firstID or more.
func renumber(ctx context.Context, db *sql.DB, query, statement string) error {
	_, rows, err := rows(ctx, db, query, math.MaxInt)
	if err != nil {
		return err
	}
	greatest, last := make([]int64, len(rows)), make([]int64, len(rows))
	for n, row := range rows {
		if _, err := fmt.Sscan(row[1]+" "+row[2], &greatest[n], &last[n]); err != nil {
			return fmt.Errorf("schema: %s: %w", row[0], err)
		}
	}
	next := int64(firstID)
	if len(rows) > 0 {
		next += slices.Max(last) / idsPerTable * idsPerTable
	}
	for n, row := range rows {
		if last[n] >= firstID {
			continue
		}
		first := next
		if next += idsPerTable; next > greatest[n] {
			first = firstID
		}
		if _, err := db.ExecContext(ctx, fmt.Sprintf(statement, row[0], first)); err != nil {
			return fmt.Errorf("schema: %s: %w", row[0], err)
		}
	}
	return nil
}

func prepareMySQL(ctx context.Context, db *sql.DB, server *localserver.MySQL, schema []script) (database string, _ error) {
	for _, statement := range []string{
		"CREATE USER IF NOT EXISTS 'root'@'127.0.0.1' IDENTIFIED BY ''",
		"GRANT ALL ON *.* TO 'root'@'127.0.0.1'",
		"SET GLOBAL innodb_flush_log_at_trx_commit = 0",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return "", fmt.Errorf("local: %s: %w", statement, err)
		}
	}
	// The plugin shows exactly which connection waits for a table. The statement fails on MySQL, or
	// without the plugin's file.
	_, _ = db.ExecContext(ctx, "INSTALL SONAME 'metadata_lock_info'")
	return loadMySQL(ctx, server, schema)
}

func preparePostgres(ctx context.Context, db *sql.DB, server *localserver.Postgres, schema []script) (database string, _ error) {
	var rules string
	if err := db.QueryRowContext(ctx, "SHOW hba_file").Scan(&rules); err != nil {
		return "", fmt.Errorf("local: %w", err)
	}
	for _, statement := range []string{
		"COPY (SELECT 'host all all 127.0.0.1/32 trust') TO " + quote(rules), // no password on loopback
		"ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return "", fmt.Errorf("local: %s: %w", statement, err)
		}
	}
	return loadPostgres(ctx, db, server, schema)
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
