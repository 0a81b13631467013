package program_test

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/web/webtest"
)

// killedOnOwnServers: when the explorer is killed during a run, its processes and connections end.
// The user's own servers have their earlier settings, and no lease is kept for long.
func killedOnOwnServers(t *testing.T, s ownServers) {
	t.Helper()
	ctx := t.Context()
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr, Password: "secret"})
	defer client.Close()
	if err := client.ConfigSet(ctx, "requirepass", "").Err(); err != nil {
		t.Fatal(err)
	}
	before := serverSettings(t, s.tables, client)
	text := s.file() + "redis: " + s.redis.Addr + "\n"
	for old, by := range map[string]string{"naive": "redis-lock", "reset:\n": "reset:\n  redis: flushdb\n", "env: {": "env: { REDIS_PORT: \"" + port(s.redis.Addr) + "\","} {
		text = strings.Replace(text, old, by, 1)
	}
	file := appFile(t, text)
	mark := "OVERSELL_TEST_MARK=" + strings.ReplaceAll(t.Name(), "/", "-")
	cmd := shoptest.Command(t, "explore", "--app", file, "--events", "expire", "--full")
	cmd.Env = append(cmd.Environ(), mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	webtest.Eventually(t, "a lease is stretched", func() bool { return client.PTTL(ctx, "lock:1").Val() > 10*time.Second })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	webtest.Eventually(t, "no process is left", func() bool { return len(shoptest.With(t, mark)) == 0 })
	webtest.Eventually(t, "no connection is left", func() bool {
		var others int
		err := s.tables.QueryRowContext(ctx, "SELECT count(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user <> 'system user'").Scan(&others)
		return err == nil && others == 0 && strings.Count(client.ClientList(ctx).Val(), "\n") == 1
	})
	if after := serverSettings(t, s.tables, client); !reflect.DeepEqual(after, before) {
		t.Errorf("settings were\n%v\nand are\n%v", before, after)
	}
	if left := client.PTTL(ctx, "lock:1").Val(); left > 2*time.Minute {
		t.Errorf("the lease has %s left", left)
	}
}

// serverSettings returns the settings of the servers and of the tables.
func serverSettings(t *testing.T, db *sql.DB, client *redis.Client) map[string]string {
	t.Helper()
	all, err := client.ConfigGet(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		"SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE 'gtid_%pos' AND Variable_name NOT LIKE '%timestamp%'",
		"SELECT table_name, CONCAT_WS(' ', engine, row_format, create_options, table_comment) FROM information_schema.tables WHERE table_schema = 'shop'",
	} {
		if err := pairs(t.Context(), db, query, all); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// pairs adds the rows of a query with two columns.
func pairs(ctx context.Context, db *sql.DB, query string, to map[string]string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		to["mysql: "+name] = value
	}
	return rows.Err()
}
