package app

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

// loadPostgres runs scripts, for example dumps of pg_dump, with psql. It returns the current database after
// the last script. The error contains the message of psql. The parameter `db` is a connection to the server.
func loadPostgres(ctx context.Context, db *sql.DB, server *localserver.Postgres, scripts []script) (database string, _ error) {
	database = "shop"
	for _, s := range scripts {
		if err := createRoles(ctx, db, s.text); err != nil {
			return "", fmt.Errorf("schema: %w", err)
		}
		client, err := server.Client(ctx, database)
		if err != nil {
			return "", fmt.Errorf("schema: %w", err)
		}
		client.Args = append(client.Args, "--set=VERBOSITY=verbose", "--output="+os.DevNull, `--command=\echo :DBNAME`)
		out, messages, err := s.run(client, withoutLocales(dropsDatabase.ReplaceAllStringFunc(s.text, blank)))
		refused := refusal(messages)
		switch {
		case refused != "":
			return "", s.failed(client, nil, refused)
		case err != nil:
			return "", s.failed(client, err, messages)
		}
		database = lastLine(out)
	}
	return database, nil
}

// refusals matches psql's lines about errors. Its groups are the file, the line, the severity, the code
// (for a server's error), and the message.
var refusals = regexp.MustCompile(`(?m)^psql:(.*?):(\d+): (error|ERROR|FATAL|PANIC): +(?:([0-9A-Z]{5}): )?(.*)$`)

// tolerated matches the code and message of a harmless error. A private server already has the schema
// public, the database shop and the role shop. A dump of a later version can contain settings and
// commands that this server or client does not know.
var tolerated = regexp.MustCompile(`^(?:42P06|42P04|42710: role|42704: unrecognized configuration parameter|: invalid command \\(?:un)?restrict)`)

// refusal returns the first error that psql printed, with its line; "" if there is none.
func refusal(messages string) string {
	for _, m := range refusals.FindAllStringSubmatch(messages, -1) {
		file, line, severity, code, text := m[1], m[2], m[3], m[4], m[5]
		if tolerated.MatchString(code + ": " + text) {
			continue
		}
		if file != "<stdin>" { // a file that \i includes
			line += " of " + file
		}
		return fmt.Sprintf("line %s: %s: %s", line, severity, text)
	}
	return ""
}

// name matches a name in SQL, with or without quotes.
const name = `("(?:[^"]|"")+"|[a-zA-Z_][\w$]*)`

var (
	// dropsDatabase matches a statement that is not needed on a new server. psql cannot drop the database of
	// its connection.
	dropsDatabase   = regexp.MustCompile(`(?im)^DROP DATABASE [^;]*;`)
	createsDatabase = regexp.MustCompile(`(?im)^CREATE DATABASE [^;]*;`)
	localeOption    = regexp.MustCompile(`(?i)\s(?:LOCALE_PROVIDER|(?:ICU_|BUILTIN_)?LOCALE|LC_COLLATE|LC_CTYPE|ICU_RULES|COLLATION_VERSION)\s*=?\s*(?:'[^']*'|\w+)`)
	// createsRole and mentionsRole match statements; the group is the name of the role.
	createsRole  = regexp.MustCompile(`(?im)^CREATE (?:ROLE|USER) ` + name)
	mentionsRole = regexp.MustCompile(`(?m)^(?:ALTER .* OWNER TO|GRANT .* TO|REVOKE .* FROM|ALTER DEFAULT PRIVILEGES FOR ROLE|CREATE SCHEMA .*AUTHORIZATION) ` + name)
)

// blank returns only the line breaks of a statement, so that later lines keep their numbers.
func blank(statement string) string { return strings.Repeat("\n", strings.Count(statement, "\n")) }

// withoutLocales removes the locales of new databases, since this machine may lack them. A new database
// then gets the default locale.
func withoutLocales(text string) string {
	return createsDatabase.ReplaceAllStringFunc(text, func(statement string) string {
		return localeOption.ReplaceAllString(statement, "")
	})
}

// notRoles lists keywords that may stand in place of a role's name.
var notRoles = []string{"public", "current_user", "current_role", "session_user"}

// createRoles creates the roles that own objects or get rights, so that the program may log in as one of
// them. A dump of one database does not create them.
func createRoles(ctx context.Context, db *sql.DB, text string) error {
	known := map[string]bool{}
	for _, m := range createsRole.FindAllStringSubmatch(text, -1) {
		known[m[1]] = true
	}
	for _, m := range mentionsRole.FindAllStringSubmatch(text, -1) {
		role := m[1]
		if known[role] || slices.Contains(notRoles, strings.ToLower(role)) {
			continue
		}
		known[role] = true
		statement := "DO $do$ BEGIN CREATE ROLE " + role + " LOGIN; EXCEPTION WHEN duplicate_object OR reserved_name THEN NULL; END $do$"
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("role %s: %w", role, err)
		}
	}
	return nil
}
