package lockstrategy_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// TestSQLSent compares the statements of one sale in MariaDB's general log with
// testdata/sql/NAME.sql. Locking depends on their exact text, and an ORM may silently drop a part:
// gorm v2 ignores Set("gorm:query_option", "FOR UPDATE").
//
// It must not run in parallel with other tests of this package, since the log belongs to the
// server.
func TestSQLSent(t *testing.T) {
	e := enginetest.Coordinated(t)
	for _, entry := range lockstrategy.All() {
		t.Run(entry.Name, func(t *testing.T) {
			deps := onengine.Deps(e)
			if why := entry.Missing(deps); why != "" {
				t.Skip(why)
			}
			deps.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC) }
			logBuys(t, e, entry.New(deps), buysOf(entry))
			var received []string
			err := e.DB.Raw("SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE command_type = 'Query' ORDER BY event_time").Scan(&received).Error
			require.NoError(t, err)
			golden.Compare(t, filepath.Join("testdata", "sql", entry.Name+".sql"), withoutTokens(withoutLogging(received)))
		})
	}
}

// TestPostgresSent is the same test on PostgreSQL, with the server's log. It considers only
// statements of the buyer's sessions.
func TestPostgresSent(t *testing.T) {
	e := enginetest.CoordinatedPostgres(t)
	config := e.URLs
	config.DB += "&log_statement=all"
	logged, err := engine.Open(t.Context(), config)
	require.NoError(t, err)
	defer logged.Close()
	for _, entry := range lockstrategy.All() {
		t.Run(entry.Name, func(t *testing.T) {
			deps := onengine.Deps(logged)
			if why := entry.Missing(deps); why != "" {
				t.Skip(why)
			}
			deps.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC) }
			require.NoError(t, errors.Join(e.DB.Exec("UPDATE product SET amount = 100, version = 7, fence = 0").Error, stock.ClearAll(e.DB)))
			before := postgresLog(t, e)
			require.NoError(t, buy(t, entry.New(deps), buysOf(entry)))
			statements, processes := postgresStatements(strings.TrimPrefix(postgresLog(t, e), before))
			if slices.Contains(entry.Needs, lockstrategy.NeedsNamedLocks) && len(processes) != 1 {
				t.Errorf("lock and section on %d connections, want one", len(processes))
			}
			golden.Compare(t, filepath.Join("testdata", "sql", "postgres", entry.Name+".sql"), withoutTokens(statements))
		})
	}
}

func postgresLog(t *testing.T, e *engine.Engine) string {
	t.Helper()
	var data string
	require.NoError(t, e.Admin.Raw("SHOW data_directory").Scan(&data).Error)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(data), "log"))
	require.NoError(t, err)
	return string(text)
}

// logLine matches a statement in the log, or the parameters of the statement before it. The variable
// parameter matches one of these parameters.
var (
	logLine   = regexp.MustCompile(`(?m)^\S+ \S+ UTC \[(\d+)\] (?:LOG:  (?:statement|execute [^:]+): (.*)|DETAIL:  parameters: (.*))$`)
	parameter = regexp.MustCompile(`\$(\d+) = (?:'((?:[^']|'')*)'|NULL)`)
)

// postgresStatements returns the statements of a log with their parameters inserted, and the ids of
// the server processes that ran them.
func postgresStatements(log string) (_ string, processes map[string]bool) {
	var statements []string
	processes = map[string]bool{}
	for _, line := range logLine.FindAllStringSubmatch(log, -1) {
		processes[line[1]] = true
		if line[3] == "" {
			statements = append(statements, line[2])
			continue
		}
		values := map[string]string{}
		for _, p := range parameter.FindAllStringSubmatch(line[3], -1) {
			values["$"+p[1]] = "NULL"
			if !strings.HasSuffix(p[0], "= NULL") {
				values["$"+p[1]] = "'" + p[2] + "'"
			}
			if _, err := strconv.ParseInt(p[2], 10, 64); err == nil {
				values["$"+p[1]] = p[2]
			}
		}
		last := len(statements) - 1
		statements[last] = regexp.MustCompile(`\$\d+`).ReplaceAllStringFunc(statements[last], func(place string) string { return values[place] })
	}
	return strings.Join(statements, ";\n") + ";\n", processes
}

// buysOf returns the number of sales that show all statements of an entry. If the stock has part
// rows, the first sale divides it.
func buysOf(entry lockstrategy.Entry) int {
	if entry.Left != nil {
		return 2
	}
	return 1
}

// buy buys the given number of units, one after the other, and closes the shop.
func buy(t *testing.T, shop purchase.Strategy, times int) error {
	t.Helper()
	var err error
	for range times {
		_, failed := shop.Buy(t.Context(), purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1})
		err = errors.Join(err, failed)
	}
	if c, ok := shop.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

// logBuys makes the given number of sales, records them in mysql.general_log, and closes the shop.
func logBuys(t *testing.T, e *engine.Engine, shop purchase.Strategy, times int) {
	t.Helper()
	exec := func(statement string) {
		t.Helper()
		require.NoError(t, e.DB.Exec(statement).Error)
	}
	exec("SET GLOBAL log_output = 'TABLE'")
	exec("UPDATE product SET amount = 100, version = 7, fence = 0")
	require.NoError(t, stock.ClearAll(e.DB))
	exec("TRUNCATE TABLE mysql.general_log")
	exec("SET GLOBAL general_log = ON")
	err := buy(t, shop, times)
	exec("SET GLOBAL general_log = OFF")
	require.NoError(t, err)
}

// TestNamedLockConnection: lock, section and release use one connection. With the section on
// another connection, the lock could be lost while the writes go on.
func TestNamedLockConnection(t *testing.T) {
	e := enginetest.Local(t)
	logBuys(t, e, lockstrategy.NewNamedLock(onengine.Deps(e)), 1)
	var statements, connections int
	err := e.DB.Raw(`SELECT COUNT(*), COUNT(DISTINCT thread_id) FROM mysql.general_log
		WHERE command_type = 'Query' AND argument NOT LIKE '%SET GLOBAL%'`).Row().Scan(&statements, &connections)
	if err != nil || statements < 6 || connections != 1 {
		t.Errorf("%d statements on %d connections, %v; want all on one", statements, connections, err)
	}
}

// withoutLogging removes the statements that turn the log on and off.
func withoutLogging(statements []string) string {
	var lines []string
	for _, s := range statements {
		if !strings.Contains(s, "SET GLOBAL") {
			lines = append(lines, s+";\n")
		}
	}
	return strings.Join(lines, "")
}

// withoutTokens replaces values that differ from run to run: a fencing token, which depends on
// etcd's history, the key that `redis-lua` gives an order, and the id of the order's entry.
func withoutTokens(statements string) string {
	for pattern, word := range map[string]string{
		`fence ([=<]) \d+`: "fence $1 TOKEN", `redis-lua-[a-z2-7]{26}`: "redis-lua-KEY", `'\d{13}-\d+'`: "'ENTRY'",
	} {
		statements = regexp.MustCompile(pattern).ReplaceAllString(statements, word)
	}
	return statements
}
