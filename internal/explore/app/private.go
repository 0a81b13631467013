package app

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

// startPrivate starts the servers that the file names, and returns their URLs.
func (s *Servers) startPrivate() (urls map[string]string, err error) {
	if s.private, err = localserver.NewGroup(); err != nil {
		return nil, err
	}
	urls = map[string]string{}
	if s.app.MySQL != nil {
		m, err := localserver.StartMySQL(s.private)
		if err != nil {
			return nil, fmt.Errorf("local: %w", err)
		}
		urls["mysql"], s.addresses["mysql"] = m.URL(), m.Addr
	}
	if s.app.Postgres != nil {
		p, err := localserver.StartPostgres(s.private)
		if err != nil {
			return nil, fmt.Errorf("local: %w", err)
		}
		urls["postgres"], s.addresses["postgres"] = p.URL(), p.Addr
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

// firstID is the first id of new rows on a private server, so that ids are not mistaken for other
// numbers.
const firstID = 1_000_001

// prepare lets the program in without a password, makes commits skip the disk, which is deleted anyway,
// and loads the schema.
func (s *Servers) prepare(ctx context.Context) (err error) {
	var schema []string
	if s.app.Schema != "" {
		if schema, err = readSchema(s.app.Schema); err != nil {
			return err
		}
	}
	if s.app.MySQL != nil {
		if err := prepareMySQL(ctx, s.SQL("mysql"), schema); err != nil {
			return err
		}
	}
	if s.app.Postgres != nil {
		if err := preparePostgres(ctx, s.SQL("postgres"), schema); err != nil {
			return err
		}
	}
	return s.Renumber(ctx)
}

// Renumber makes the ids of new rows begin at a high number, on private servers. A command that creates
// tables calls for it again.
func (s *Servers) Renumber(ctx context.Context) error {
	if !s.app.Local {
		return nil
	}
	if s.app.MySQL != nil {
		if err := renumber(ctx, s.SQL("mysql"),
			"SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND auto_increment IS NOT NULL",
			"ALTER TABLE `%s` AUTO_INCREMENT = %d"); err != nil {
			return err
		}
	}
	if s.app.Postgres != nil {
		return renumber(ctx, s.SQL("postgres"),
			"SELECT quote_ident(schemaname) || '.' || quote_ident(sequencename) FROM pg_sequences",
			"ALTER SEQUENCE %s RESTART WITH %d")
	}
	return nil
}

// renumber runs a statement with firstID for each name that a query returns.
func renumber(ctx context.Context, db *sql.DB, query, statement string) error {
	_, rows, err := rows(ctx, db, query, math.MaxInt)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if _, err := db.ExecContext(ctx, fmt.Sprintf(statement, row[0], firstID)); err != nil {
			return fmt.Errorf("schema: %s: %w", row[0], err)
		}
	}
	return nil
}

func prepareMySQL(ctx context.Context, db *sql.DB, schema []string) error {
	for _, statement := range []string{
		"CREATE USER IF NOT EXISTS 'root'@'127.0.0.1' IDENTIFIED BY ''",
		"GRANT ALL ON *.* TO 'root'@'127.0.0.1'",
		"SET GLOBAL innodb_flush_log_at_trx_commit = 0",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("local: %s: %w", statement, err)
		}
	}
	// The plugin shows exactly which connection waits for a table. An error means MySQL, or a missing
	// file.
	_, _ = db.ExecContext(ctx, "INSTALL SONAME 'metadata_lock_info'")
	for _, text := range schema {
		for _, statement := range statements(text) {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("schema: %s: %w", oneLine(statement), err)
			}
		}
	}
	return nil
}

func preparePostgres(ctx context.Context, db *sql.DB, schema []string) error {
	var rules string
	if err := db.QueryRowContext(ctx, "SHOW hba_file").Scan(&rules); err != nil {
		return fmt.Errorf("local: %w", err)
	}
	for _, statement := range []string{
		"COPY (SELECT 'host all all 127.0.0.1/32 trust') TO " + quote(rules), // no password on loopback
		"ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("local: %s: %w", statement, err)
		}
	}
	for _, text := range schema { // several statements need the simple protocol
		if _, err := db.ExecContext(ctx, text, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
	}
	return nil
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// textOrComment matches text in which separators do not count.
const textOrComment = "'(?:[^'\\\\]|\\\\.|'')*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|#[^\n]*|/\\*.*?\\*/"

var quotedOrNot = regexp.MustCompile("(?s)" + textOrComment)

// between finds a separator of statements: the delimiter, or a line DELIMITER whose group is the next
// delimiter. It also matches textOrComment.
func between(delimiter string) *regexp.Regexp {
	return regexp.MustCompile("(?s)" + textOrComment + `|(?im:^[ \t]*DELIMITER[ \t]+(\S+)[ \t\r]*$)|` + regexp.QuoteMeta(delimiter))
}

// statements splits a file for MySQL, whose protocol takes one statement at a time. DELIMITER allows
// semicolons within a procedure. It belongs to the client; no server knows it.
func statements(text string) (all []string) {
	delimiter := ";"
	for begin, from := 0, 0; ; {
		at := between(delimiter).FindStringSubmatchIndex(text[from:])
		if at == nil {
			all = append(all, text[begin:])
			break
		}
		found, named := text[from+at[0]:from+at[1]], at[2] >= 0
		if found == delimiter || named {
			all = append(all, text[begin:from+at[0]])
			begin = from + at[1]
		}
		if named {
			delimiter = text[from+at[2] : from+at[3]]
		}
		from += at[1]
	}
	var some []string
	for _, statement := range all {
		bare := quotedOrNot.ReplaceAllStringFunc(statement, func(found string) string {
			if found[0] == '-' || found[0] == '#' || found[0] == '/' {
				return ""
			}
			return found
		})
		if strings.TrimSpace(bare) != "" {
			some = append(some, strings.TrimSpace(statement))
		}
	}
	return some
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
