package app

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// loadMySQL runs scripts, for example dumps of mysqldump, on a connection of their own, since a dump
// changes its session. It returns the database in which they end. The error names the line.
func loadMySQL(ctx context.Context, db *sql.DB, scripts []script) (database string, err error) {
	err = onceOnly(ctx, db, func(c *sql.Conn) error {
		for _, s := range scripts {
			if err := loadScriptMySQL(ctx, c, s); err != nil {
				return err
			}
		}
		return c.QueryRowContext(ctx, "SELECT COALESCE(DATABASE(), '')").Scan(&database)
	})
	return database, err
}

// onceOnly calls load with a connection that nothing uses afterwards.
func onceOnly(ctx context.Context, db *sql.DB, load func(*sql.Conn) error) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	err = load(c)
	_ = c.Raw(func(any) error { return driver.ErrBadConn }) // ends the session
	_ = c.Close()
	return err
}

var (
	// clientOfMySQL matches a command that only the client mysql runs.
	clientOfMySQL = regexp.MustCompile(`(?i)^(?:source\s|\\\S|system\s|tee\s|pager\s|charset\s)`)
	// definer matches the account whose rights a view, trigger or routine has.
	definer = regexp.MustCompile("(?i)\\bDEFINER\\s*=\\s*(?:`[^`]*`|'[^']*')@(?:`[^`]*`|'[^']*')")
	// creates matches a statement that may have a definer.
	creates = regexp.MustCompile(`(?i)^(?:/\*M?!\d* ?)?(?:CREATE|ALTER)\b`)
)

// emptyQuery is MySQL's error for a statement that is only a comment, such as one for a later version.
const emptyQuery = 1065

func loadScriptMySQL(ctx context.Context, c *sql.Conn, s script) error {
	for _, one := range split(s.text) {
		text := one.text
		bare := strings.TrimSpace(commentsOut(text))
		switch {
		case clientOfMySQL.MatchString(bare):
			return fmt.Errorf("%s: %s is a command of the client mysql, which no server knows; replace it by SQL, or delete it", s.at(one.line), quotedFor(firstLine(bare)))
		case creates.MatchString(bare): // the account may not exist here
			text = definer.ReplaceAllString(text, "")
		}
		_, err := c.ExecContext(ctx, text)
		var my *mysql.MySQLError
		if err != nil && !(errors.As(err, &my) && my.Number == emptyQuery) {
			return fmt.Errorf("%s: %s: %w", s.at(one.line), quotedFor(bare), err)
		}
	}
	return nil
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// textOrComment matches text in which separators do not count.
const textOrComment = "'(?:[^'\\\\]|\\\\.|'')*'|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|--[^\n]*|#[^\n]*|/\\*.*?\\*/"

var quotedOrNot = regexp.MustCompile("(?s)" + textOrComment)

// commentsOut removes comments. A comment that the server executes, such as /*!40101 ... */, is none.
func commentsOut(statement string) string {
	return quotedOrNot.ReplaceAllStringFunc(statement, func(found string) string {
		executed := strings.HasPrefix(found, "/*!") || strings.HasPrefix(found, "/*M!")
		if found[0] == '-' || found[0] == '#' || found[0] == '/' && (!executed || strings.Contains(found[:min(len(found), 12)], "!999999")) {
			return ""
		}
		return found
	})
}

// between finds a separator of statements: the delimiter, or a line DELIMITER whose group is the next
// delimiter. It also matches textOrComment.
func between(delimiter string) *regexp.Regexp {
	return regexp.MustCompile("(?s)" + textOrComment + `|(?im:^[ \t]*DELIMITER[ \t]+(\S+)[ \t\r]*$)|` + regexp.QuoteMeta(delimiter))
}

// A statement is a part of a script, with the line on which it begins, from 1.
type statement struct {
	text string
	line int
}

// statements returns the texts of split.
func statements(text string) (all []string) {
	for _, s := range split(text) {
		all = append(all, s.text)
	}
	return all
}

// split splits a file for MySQL, whose protocol takes one statement at a time. DELIMITER allows
// semicolons within a procedure. It belongs to the client; no server knows it.
func split(text string) (all []statement) {
	line, counted := 1, 0
	add := func(begin, end int) {
		part := text[begin:end]
		if strings.TrimSpace(commentsOut(part)) == "" {
			return
		}
		begin += len(part) - len(strings.TrimLeft(part, " \t\r\n"))
		line += strings.Count(text[counted:begin], "\n")
		counted = begin
		all = append(all, statement{strings.TrimSpace(part), line})
	}
	separator := between(";")
	delimiter := ";"
	for begin, from := 0, 0; ; {
		at := separator.FindStringSubmatchIndex(text[from:])
		if at == nil {
			add(begin, len(text))
			return all
		}
		found, named := text[from+at[0]:from+at[1]], at[2] >= 0
		if found == delimiter || named {
			add(begin, from+at[0])
			begin = from + at[1]
		}
		if named {
			delimiter = text[from+at[2] : from+at[3]]
			separator = between(delimiter)
		}
		from += at[1]
	}
}
