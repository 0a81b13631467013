package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// loadPostgres runs scripts, for example dumps of pg_dump, on a connection of their own, since a dump
// changes its session. It returns the database in which they end. The error names the line.
func loadPostgres(ctx context.Context, db *sql.DB, scripts []script) (database string, err error) {
	var l postgresLoader
	err = onceOnly(ctx, db, func(c *sql.Conn) error {
		return c.Raw(func(underlying any) error {
			l.config = underlying.(*stdlib.Conn).Conn().Config()
			return nil
		})
	})
	if err == nil {
		err = l.connect(ctx, l.config.Database)
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = l.conn.Close(ctx) }()
	for _, s := range scripts {
		if err := l.load(ctx, s); err != nil {
			return "", err
		}
	}
	return l.config.Database, nil
}

// A postgresLoader runs scripts, and follows them from database to database.
type postgresLoader struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
}

// connect switches to another database.
func (l *postgresLoader) connect(ctx context.Context, database string) error {
	config := l.config.Copy()
	config.Database = database
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	if l.conn != nil {
		_ = l.conn.Close(ctx)
	}
	l.config, l.conn = config, conn
	return nil
}

// exec runs statements of SQL.
func (l *postgresLoader) exec(ctx context.Context, text string) error {
	_, err := l.conn.PgConn().Exec(ctx, text).ReadAll()
	return err
}

// ofDump matches text that only a dump has. Any other script is sent as a whole.
var ofDump = regexp.MustCompile(`(?im)^\\|^COPY\s.*\sFROM\s+STDIN|^-- PostgreSQL database dump`)

func (l *postgresLoader) load(ctx context.Context, s script) error {
	if !ofDump.MatchString(s.text) {
		if err := l.exec(ctx, s.text); err != nil {
			return inScript(s, 1, s.text, err)
		}
		return nil
	}
	parts := partsOf(s.text)
	if err := l.createRoles(ctx, parts); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	for _, p := range parts {
		if err := l.run(ctx, s, p); err != nil {
			return err
		}
	}
	return nil
}

// inScript adds the statement and its line to an error of the server, whose position counts characters
// from the beginning of the text.
func inScript(s script, line int, text string, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Position > 0 && int(pg.Position) <= len([]rune(text)) {
		before := string([]rune(text)[:pg.Position-1])
		line += strings.Count(before, "\n")
		rest, _, _ := strings.Cut(text[strings.LastIndexByte(before, '\n')+1:], "\n")
		text = rest
	} else if text == s.text { // a script without a known position
		return fmt.Errorf("%s: %w", strings.TrimSuffix(s.at(0), ": line 0"), err)
	}
	return fmt.Errorf("%s: %s: %w", s.at(line), quotedFor(text), err)
}

// A part is a statement of a dump, a command for the client psql, or COPY with its rows.
type part struct {
	statement
	meta bool   // the text is a command for psql
	rows string // of COPY ... FROM stdin
	copy bool
}

var (
	copies = regexp.MustCompile(`(?is)^COPY\s.*\sFROM\s+STDIN\b`)
	// drops and begins match the statements that remove or create a whole database, which is the group.
	drops  = regexp.MustCompile(`(?i)^DROP\s+DATABASE\s+(?:IF\s+EXISTS\s+)?` + roleName)
	begins = regexp.MustCompile(`(?i)^CREATE\s+DATABASE\s+` + roleName)
	// connects matches a command that switches to a database, which is the group.
	connects = regexp.MustCompile(`^\\(?:c|connect)\s+(?:-reuse-previous=\w+\s+)?"?([^\s"]+)`)
	sets     = regexp.MustCompile(`(?i)^SET\s`)
)

// Codes of PostgreSQL's errors.
const (
	undefinedObject   = "42704" // also: an unknown setting, of a later version
	duplicateSchema   = "42P06" // a private server has the schema public
	duplicateDatabase = "42P04" // and the database shop
	duplicateObject   = "42710" // and the role shop
)

// restricts lists the commands for psql that protect against a hostile dump, and change nothing.
var restricts = []string{`\restrict`, `\unrestrict`, `\encoding`, `\echo`, `\timing`}

func (l *postgresLoader) run(ctx context.Context, s script, p part) error {
	switch {
	case p.meta:
		command, _, _ := strings.Cut(p.text, " ")
		if slices.Contains(restricts, command) {
			return nil
		}
		to := connects.FindStringSubmatch(p.text)
		if to == nil {
			return fmt.Errorf("%s: %s is a command of the client psql, which no server knows; replace it by SQL, or delete it", s.at(p.line), quotedFor(p.text))
		}
		if err := l.connect(ctx, to[1]); err != nil {
			return fmt.Errorf("%s: %s: %w", s.at(p.line), quotedFor(p.text), err)
		}
		return nil
	case p.copy:
		if _, err := l.conn.PgConn().CopyFrom(ctx, strings.NewReader(p.rows), p.text); err != nil {
			return fmt.Errorf("%s: %s: %w", s.at(p.line), quotedFor(p.text), err)
		}
		return nil
	case drops.MatchString(p.text):
		return nil // the server is new, and one does not drop the database of one's connection
	}
	err := l.exec(ctx, p.text)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	created := begins.FindStringSubmatch(p.text)
	switch {
	case pg.Code == duplicateSchema, pg.Code == duplicateDatabase,
		pg.Code == duplicateObject && strings.HasPrefix(p.text, "CREATE ROLE "),
		pg.Code == undefinedObject && sets.MatchString(p.text):
		return nil
	case created != nil: // for example, this machine lacks the locale
		err = l.exec(ctx, "CREATE DATABASE "+created[1])
	}
	if err != nil {
		return inScript(s, p.line, p.text, err)
	}
	return nil
}

// roleName matches a role: a name, or a quoted one.
const roleName = `("(?:[^"]|"")+"|[a-zA-Z_][\w$]*)`

// roles matches the roles that own objects or get rights. A dump does not create them.
var roles = []*regexp.Regexp{
	regexp.MustCompile(`\bOWNER TO ` + roleName + `$`),
	regexp.MustCompile(`^GRANT\s.*\sTO ` + roleName + `(?: WITH GRANT OPTION)?$`),
	regexp.MustCompile(`^REVOKE\s.*\sFROM ` + roleName + `$`),
	regexp.MustCompile(`^ALTER DEFAULT PRIVILEGES FOR ROLE ` + roleName + `\s`),
	regexp.MustCompile(`\bAUTHORIZATION ` + roleName + `$`),
}

// notRoles lists the words in the place of a role that name none.
var notRoles = []string{"public", "current_user", "current_role", "session_user"}

// createRoles creates the roles that the dump mentions, so that the program may log in as one of them.
func (l *postgresLoader) createRoles(ctx context.Context, parts []part) error {
	seen := map[string]bool{}
	for _, p := range parts {
		if p.meta || p.copy {
			continue
		}
		for _, pattern := range roles {
			m := pattern.FindStringSubmatch(p.text)
			if m == nil || seen[m[1]] || slices.Contains(notRoles, strings.ToLower(m[1])) {
				continue
			}
			seen[m[1]] = true
			statement := "DO $do$ BEGIN CREATE ROLE " + m[1] + " LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $do$"
			if err := l.exec(ctx, statement); err != nil {
				return fmt.Errorf("role %s: %w", m[1], err)
			}
		}
	}
	return nil
}

// ignoredPG matches the text of PostgreSQL in which a semicolon ends no statement; a tag of dollar
// quotes is the group, and the text itself follows. Comments in comments are not supported: dumps have none.
var ignoredPG = regexp.MustCompile(`(?s)\b[eE]'(?:[^'\\]|\\.|'')*'|'[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|(\$(?:[A-Za-z_]\w*)?\$)|;|\n\\[^\n]*`)

// atomic matches a routine of SQL, whose statements have semicolons; its end is END.
var (
	atomicBegins = regexp.MustCompile(`(?i)\bBEGIN\s+ATOMIC\b`)
	atomicEnds   = regexp.MustCompile(`(?i)\bEND\s*$`)
)

// partsOf splits a dump.
func partsOf(text string) (all []part) {
	text = "\n" + text // so that each line begins after a line break
	line, counted := 0, 0
	lineAt := func(i int) int {
		line += strings.Count(text[counted:i], "\n")
		counted = i
		return line
	}
	begin, from := 0, 0
	first := 0                     // where the statement begins, after the last call of bare
	bare := func(end int) string { // the statement so far, without the comments before it
		first = begin + len(leading.FindString(text[begin:end]))
		return strings.TrimSpace(text[first:end])
	}
	for {
		at := ignoredPG.FindStringSubmatchIndex(text[from:])
		if at == nil {
			if rest := bare(len(text)); rest != "" {
				all = append(all, part{statement: statement{rest, lineAt(first)}})
			}
			return all
		}
		start, end := from+at[0], from+at[1]
		from = end
		switch {
		case at[2] >= 0: // dollar quotes
			tag := text[start:end]
			if close := strings.Index(text[end:], tag); close >= 0 {
				from = end + close + len(tag)
			}
		case text[start] == '\n': // a command for psql, if it is not within a statement
			if bare(start) != "" {
				from = start + 1
				continue
			}
			command := strings.TrimSpace(text[start+1 : end])
			all = append(all, part{statement: statement{command, lineAt(start + 1)}, meta: true})
			begin = end
		case text[start] == ';':
			sql := bare(start)
			if atomicBegins.MatchString(sql) && !atomicEnds.MatchString(sql) {
				continue
			}
			p := part{statement: statement{sql, lineAt(first)}}
			if copies.MatchString(sql) {
				p.copy = true
				rows := text[end:]
				rows = rows[min(strings.IndexByte(rows, '\n')+1, len(rows)):]
				data := len(text) - len(rows)
				stop := regexp.MustCompile(`(?m)^\\\.\r?$`).FindStringIndex(rows)
				if stop == nil {
					stop = []int{len(rows), len(rows)}
				}
				p.rows = rows[:stop[0]]
				end = data + stop[1]
			}
			if sql != "" {
				all = append(all, p)
			}
			begin, from = end, end
		}
	}
}

// leading matches white space and comments at the beginning of a statement.
var leading = regexp.MustCompile(`(?s)^(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)+`)
