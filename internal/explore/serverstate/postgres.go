package serverstate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgresConnections finds out which connections of PostgreSQL wait for which other connections.
//
// The explorer finds deadlocks itself: the victim is always the connection whose wait has closed the cycle. The server
// would search only after deadlock_timeout, so its victim depends on how long each connection has waited.
type postgresConnections struct {
	admin *sql.DB

	known map[int64]bool // the result of the last Waiting

	mu         sync.Mutex
	ours       map[int64]bool // connections of buyers
	sacrificed map[int64]bool // connections whose statement was ended because of a deadlock and is not answered yet
}

func newPostgresConnections(admin *sql.DB) *postgresConnections {
	return &postgresConnections{admin: admin, ours: map[int64]bool{}, sacrificed: map[int64]bool{}}
}

// noTimeouts switches off the time-outs of the role or the database. It skips those that this version does not have. The view pg_settings
// would list them, but is slower, since it formats every setting.
const noTimeouts = `SELECT set_config(name, '0', false)
	FROM unnest(ARRAY['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout']) AS name
	WHERE current_setting(name, true) IS NOT NULL`

// Connected implements Connections. Only a superuser may set deadlock_timeout. At its default of one second, the
// explorer still finds each deadlock first. Connected refuses a pooler such as PgBouncer: behind it, settings and End
// could apply to different sessions.
func (d *postgresConnections) Connected(ctx context.Context, conn driver.Conn) (int64, error) {
	id, err := connectionID(ctx, conn, "SELECT pg_backend_pid()")
	if err != nil {
		return 0, err
	}
	greeted, ok := conn.(interface{ Greeted() uint32 })
	if !ok || int64(greeted.Greeted()) != id {
		return 0, errors.New("this is a connection pooler, which hides the connection that sends a command: give the explorer the database's own address")
	}
	exec := conn.(driver.ExecerContext)
	if _, err := exec.ExecContext(ctx, noTimeouts, nil); err != nil {
		return 0, err
	}
	if _, err := exec.ExecContext(ctx, "SET deadlock_timeout = '1h'", nil); err != nil && !isPostgres(err, errInsufficientPrivilege) {
		return 0, err
	}
	d.Adopt(id)
	return id, nil
}

// Adopt records that the connection belongs to a buyer, so that waits for it count.
func (d *postgresConnections) Adopt(id int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ours[id] = true
}

func (d *postgresConnections) Blocks() bool { return true }

// Waiting reads the table of locks. A connection that was granted a lock no longer waits there, even if its process
// has not woken yet. The table includes advisory locks.
func (d *postgresConnections) Waiting(ctx context.Context, _ bool) (map[int64]bool, error) {
	blockers, err := d.blockers(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask which connections wait: %w", err)
	}
	if victim, found := d.closed(blockers); found {
		return nil, d.sacrifice(ctx, victim)
	}
	d.known = map[int64]bool{}
	for id := range blockers {
		d.known[id] = true
	}
	return d.known, nil
}

// blockers maps each waiting connection of a buyer to the connections that it waits for. It excludes waits for
// connections that belong to no buyer, such as a VACUUM that truncates a table: they end by themselves.
func (d *postgresConnections) blockers(ctx context.Context) (map[int64][]int64, error) {
	blockers := map[int64][]int64{}
	var waits, holds int64
	err := each(ctx, d.admin, `SELECT a.pid, b.pid
		FROM unnest($1::int[]) AS a(pid), unnest(pg_blocking_pids(a.pid)) AS b(pid)`,
		[]any{&waits, &holds}, func() { blockers[waits] = append(blockers[waits], holds) }, d.buyers())
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(blockers, func(_ int64, holders []int64) bool {
		return slices.ContainsFunc(holders, func(id int64) bool { return !d.ours[id] })
	})
	return blockers, err
}

// buyers returns the buyers' connections as a PostgreSQL array.
func (d *postgresConnections) buyers() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ids []string
	for id := range d.ours {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	return "{" + strings.Join(ids, ",") + "}"
}

// closed returns a connection whose wait has closed a cycle, which is a deadlock. Of several such connections, it
// returns the one with the highest number.
func (d *postgresConnections) closed(blockers map[int64][]int64) (victim int64, found bool) {
	for id := range blockers {
		if !inCircle(blockers, id) {
			continue
		}
		if !found || d.known[victim] && !d.known[id] || d.known[victim] == d.known[id] && id > victim {
			victim, found = id, true
		}
	}
	return victim, found
}

// inCircle reports whether the connection waits for itself, possibly through other connections.
func inCircle(blockers map[int64][]int64, id int64) bool {
	seen, next := map[int64]bool{}, slices.Clone(blockers[id])
	for len(next) > 0 {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		if at == id {
			return true
		}
		if !seen[at] {
			seen[at] = true
			next = append(next, blockers[at]...)
		}
	}
	return false
}

// sacrifice ends the wait of a deadlock's victim, once.
func (d *postgresConnections) sacrifice(ctx context.Context, victim int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sacrificed[victim] { // the server has not executed the cancellation yet
		return nil
	}
	d.sacrificed[victim] = true
	return d.cancel(ctx, victim)
}

func (d *postgresConnections) cancel(ctx context.Context, id int64) error {
	_, err := d.admin.ExecContext(ctx, "SELECT pg_cancel_backend($1::int)", id)
	return err
}

// End waits until the server's process has ended. By then the transaction is rolled back (postinit.c,
// ShutdownPostgres is called before everything else at exit).
func (d *postgresConnections) End(ctx context.Context, c Conn) error {
	if _, err := d.admin.ExecContext(ctx, "SELECT pg_terminate_backend($1::int)", c.ID()); err != nil {
		return err
	}
	return untilGone(ctx, d, c)
}

// Gone implements Connections.
func (d *postgresConnections) Gone(ctx context.Context, c Conn) (bool, error) {
	gone, err := gone(ctx, d.admin, "SELECT count(*) FROM pg_stat_get_activity($1::int)", c)
	if gone {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.ours, c.ID()) // the server may reuse the number for another connection
		delete(d.sacrificed, c.ID())
	}
	return gone, err
}

// Interrupt ends the statement like lock_timeout: the transaction fails and releases its locks (own.TestTimeoutShown).
// Only the error differs, and Answer replaces it.
func (d *postgresConnections) Interrupt(ctx context.Context, c Conn) error {
	return d.cancel(ctx, c.ID())
}

// The error codes that this file handles (PostgreSQL 15 manual, appendix A).
const (
	errInsufficientPrivilege = "42501"
	errQueryCanceled         = "57014"
	errLockNotAvailable      = "55P03"
	errDeadlockDetected      = "40P01"
)

func (d *postgresConnections) Answer(ctx context.Context, s Statement, got *Rows, err error) (*Rows, error) {
	d.mu.Lock()
	victim := d.sacrificed[s.Conn.ID()]
	delete(d.sacrificed, s.Conn.ID())
	d.mu.Unlock()
	if isPostgres(err, errQueryCanceled) {
		switch {
		case victim:
			return nil, &pgconn.PgError{Severity: "ERROR", Code: errDeadlockDetected, Message: "deadlock detected"}
		case s.TimedOut:
			return nil, &pgconn.PgError{Severity: "ERROR", Code: errLockNotAvailable, Message: "canceling statement due to lock timeout"}
		}
	}
	return endIfHungUp(ctx, d, s, got, err)
}

func isPostgres(err error, code string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == code
}

type postgresRecords struct{ admin *sql.DB }

// Prepare implements Records. On a disposable server, a commit need not reach the disk.
func (r postgresRecords) Prepare(ctx context.Context, disposable bool) error {
	if !disposable {
		return nil
	}
	for _, statement := range []string{"ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()"} {
		if _, err := r.admin.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("prepare the server: %w", err)
		}
	}
	return nil
}

// Stated implements Records.
func (r postgresRecords) Stated(ctx context.Context) (bool, error) {
	var below bool
	if err := r.admin.QueryRowContext(ctx, "SELECT current_setting('default_transaction_isolation') <> 'serializable'").Scan(&below); err != nil {
		return false, fmt.Errorf("ask for the level of transactions: %w", err)
	}
	return below, nil
}

func (r postgresRecords) Recount() string {
	return "SELECT setval(pg_get_serial_sequence('purchase_history', 'id'), COALESCE((SELECT MAX(id) FROM purchase_history), 0) + 1, false)"
}

// Cleared does nothing: in PostgreSQL, no statement sees or locks a deleted row.
func (r postgresRecords) Cleared(context.Context) error { return nil }

func (r postgresRecords) NextID(context.Context) (int64, error) { return 0, nil }

func (r postgresRecords) Milliseconds() string {
	return "FLOOR(EXTRACT(EPOCH FROM purchase_time) * 1000)::bigint"
}
