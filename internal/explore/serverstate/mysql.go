package serverstate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// mysqlConnections finds the waits of connections in MariaDB or MySQL: for rows, tables and named locks.
type mysqlConnections struct {
	admin   *sql.DB
	adopted bool // a program's connections exist
	tables  metadataLocks
}

func (d *mysqlConnections) Connected(ctx context.Context, conn driver.Conn) (int64, error) {
	wait := fmt.Sprintf("SET SESSION innodb_lock_wait_timeout = %d", int(schedule.Forever.Seconds()))
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, wait, nil); err != nil {
		return 0, err
	}
	return connectionID(ctx, conn, "SELECT CONNECTION_ID()")
}

// Adopt implements Connections. The connection belongs to a program, which may lock tables.
func (d *mysqlConnections) Adopt(int64) { d.adopted = true }

func (d *mysqlConnections) Blocks() bool { return true }

// Waiting reads the states of transactions twice and the server's counter of waits in between, since each reading
// alone is unreliable. A state says LOCK WAIT even before the server has checked for a deadlock, which may end that
// wait. The counter includes a wait only after the check (MariaDB, lock0lock.cc, lock_wait: check_and_resolve, then
// wait_start). But it still includes a transaction that got the lock, or was a deadlock's victim, until its thread
// wakes. So the waits are real if both readings agree and the counter is at least their number. The counter may be
// larger: MySQL decrements it without a lock (lock_wait_suspend_thread), so it may stay too high for ever.
func (d *mysqlConnections) Waiting(ctx context.Context, named bool) (map[int64]bool, error) {
	waiting := map[int64]bool{}
	if d.adopted || named {
		if err := d.waitingByState(ctx, named, waiting); err != nil {
			return nil, fmt.Errorf("ask which connections wait: %w", err)
		}
	}
	before, err := d.lockWaits(ctx)
	if err != nil || len(before) == 0 {
		return waiting, err
	}
	var name string
	var counted int
	if err := d.admin.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").Scan(&name, &counted); err != nil {
		return nil, fmt.Errorf("ask which connections wait: %w", err)
	}
	if counted < len(before) {
		return nil, nil
	}
	after, err := d.lockWaits(ctx)
	if err != nil || !slices.Equal(before, after) {
		return nil, err
	}
	for _, wait := range after {
		waiting[wait.thread] = true
	}
	return waiting, nil
}

// A lockWait is a waiting transaction. Different waits of one transaction differ in their locks.
type lockWait struct {
	thread int64 // 0: a thread of the server itself
	locks  string
}

// lockWaits returns the lock waits of the whole server. It does not use information_schema.innodb_trx, a copy that
// may be out of date.
func (d *mysqlConnections) lockWaits(ctx context.Context) (waits []lockWait, err error) {
	all, err := d.transactions(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask which connections wait: %w", err)
	}
	for _, transaction := range all {
		if _, rest, found := strings.Cut(transaction, "\nLOCK WAIT "); found {
			locks, _, _ := strings.Cut(rest, "\n")
			waits = append(waits, lockWait{threadOf(transaction), locks})
		}
	}
	return waits, nil
}

// transactions returns the sections of InnoDB's status, one for each transaction.
func (d *mysqlConnections) transactions(ctx context.Context) ([]string, error) {
	var kind, of, status string
	if err := d.admin.QueryRowContext(ctx, "SHOW ENGINE INNODB STATUS").Scan(&kind, &of, &status); err != nil {
		return nil, err
	}
	_, status, _ = strings.Cut(status, "LIST OF TRANSACTIONS FOR EACH SESSION:")
	return strings.Split(status, "\n---TRANSACTION "), nil
}

// thread matches the line of a transaction's section that names its connection.
var thread = regexp.MustCompile(`\nM(?:ariaDB|ySQL) thread id ([0-9]+),`)

// threadOf returns the connection of a transaction; 0 for a transaction of the server itself.
func threadOf(transaction string) (id int64) {
	if found := thread.FindStringSubmatch(transaction); found != nil {
		id, _ = strconv.ParseInt(found[1], 10, 64)
	}
	return id
}

// waitingByState adds the connections that wait for a lock on a table and, if `named` is true, in GET_LOCK. A
// connection that has got the named lock counts as waiting until its thread runs; Holder shows which one that is.
func (d *mysqlConnections) waitingByState(ctx context.Context, named bool, waiting map[int64]bool) error {
	states, err := d.states(ctx)
	if err != nil {
		return err
	}
	tables := false
	for id, state := range states {
		if named && state == "User lock" {
			waiting[id] = true
		}
		tables = tables || strings.HasPrefix(state, "Waiting for ") && strings.HasSuffix(state, "metadata lock")
	}
	if !d.adopted || !tables {
		d.tables.waits = nil
		return nil
	}
	return d.tables.waiting(ctx, waiting)
}

// states returns the state of each connection. It uses SHOW PROCESSLIST, which takes a third of the time of
// information_schema.processlist.
func (d *mysqlConnections) states(ctx context.Context) (map[int64]string, error) {
	rows, err := d.admin.QueryContext(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns() // MariaDB returns one more column than MySQL
	if err != nil {
		return nil, err
	}
	values := make([]any, len(columns))
	var id int64
	var state sql.NullString
	for i, name := range columns {
		switch name {
		case "Id":
			values[i] = &id
		case "State":
			values[i] = &state
		default:
			values[i] = new(sql.RawBytes)
		}
	}
	all := map[int64]string{}
	err = scanAll(rows, values, func() { all[id] = state.String })
	return all, err
}

// Holder returns the connection that has a named lock; 0 if none does. A connection that Holder returns no longer
// waits for that lock, even if the process list says so.
func (d *mysqlConnections) Holder(ctx context.Context, name string) (id int64, err error) {
	var holder sql.NullInt64
	err = d.admin.QueryRowContext(ctx, "SELECT IS_USED_LOCK(?)", name).Scan(&holder)
	return holder.Int64, err
}

func (d *mysqlConnections) End(ctx context.Context, c Conn) error {
	_, _ = d.admin.ExecContext(ctx, fmt.Sprintf("KILL %d", c.ID())) // an error means that it has already ended
	return untilGone(ctx, d, c)
}

// Gone implements Connections. A thread leaves the process list only after its transaction is rolled back and its
// locks are released (THD::cleanup, before unlink, in sql_class.cc).
func (d *mysqlConnections) Gone(ctx context.Context, c Conn) (bool, error) {
	return gone(ctx, d.admin, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", c)
}

// Interrupt ends only the statement, like a lock wait time-out with the default innodb_rollback_on_timeout=OFF. The
// transaction stays open with its writes and locks (own.TestPlanted). Only the error differs, and Answer replaces it.
// The server's own time-out would take at least 1 s in each schedule.
func (d *mysqlConnections) Interrupt(ctx context.Context, c Conn) error {
	_, err := d.admin.ExecContext(ctx, fmt.Sprintf("KILL QUERY %d", c.ID()))
	return err
}

const (
	errLockWaitTimeout  = 1205 // ER_LOCK_WAIT_TIMEOUT
	errQueryInterrupted = 1317 // ER_QUERY_INTERRUPTED
)

func (d *mysqlConnections) Answer(ctx context.Context, s Statement, got *Rows, err error) (*Rows, error) {
	switch {
	case !s.TimedOut:
	case s.NamedLock && (err == nil && got.values[0][0] == nil || isMySQL(err, errQueryInterrupted)):
		// A killed GET_LOCK returns NULL in MariaDB and an error in MySQL. After a time-out it returns 0.
		return &Rows{columns: []string{"GET_LOCK()"}, values: [][]driver.Value{{int64(0)}}}, nil
	case isMySQL(err, errQueryInterrupted):
		return nil, &mysql.MySQLError{
			Number: errLockWaitTimeout, SQLState: [5]byte([]byte("HY000")),
			Message: "Lock wait timeout exceeded; try restarting transaction",
		}
	}
	return endIfHungUp(ctx, d, s, got, err)
}

func isMySQL(err error, number uint16) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == number
}

type mysqlRecords struct {
	admin *sql.DB
	far   bool // the counter of ids has been set to FirstID
}

// Prepare implements Records. On a disposable server, a commit need not reach the disk.
func (r *mysqlRecords) Prepare(ctx context.Context, disposable bool) error {
	if !disposable {
		return nil
	}
	_, err := r.admin.ExecContext(ctx, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
	return err
}

// Stated returns true only for MariaDB: on MySQL, the comparison of states was not tested.
func (r *mysqlRecords) Stated(ctx context.Context) (bool, error) {
	mariaDB, follows := false, true
	var name, value string
	err := each(ctx, r.admin, "SHOW SESSION VARIABLES WHERE variable_name IN ('version', 'tx_isolation', 'transaction_isolation', 'wsrep_on')", []any{&name, &value}, func() {
		mariaDB = mariaDB || strings.Contains(value, "MariaDB")
		follows = follows && value != "SERIALIZABLE" && (name != "wsrep_on" || value == "OFF")
	})
	if err != nil {
		return false, fmt.Errorf("ask for the level of transactions: %w", err)
	}
	return mariaDB && follows, nil
}

// Recount returns "": setting AUTO_INCREMENT writes to the disk, which takes longer than a run.
func (r *mysqlRecords) Recount() string { return "" }

// Cleared waits until InnoDB has purged the rows that are marked as deleted. Before that, two connections that look
// for such a row lock it, so one waits for the other. Afterwards they lock the gap and do not wait.
func (r *mysqlRecords) Cleared(ctx context.Context) error {
	_, err := r.admin.ExecContext(ctx, "SET GLOBAL innodb_max_purge_lag_wait = 0") // since MariaDB 10.5.7; the explorer calls Cleared only for MariaDB
	return err
}

// NextID sets the counter to FirstID on its first call. InnoDB accepts no value below the highest existing
// id.
func (r *mysqlRecords) NextID(ctx context.Context) (id int64, err error) {
	if !r.far {
		if _, err := r.admin.ExecContext(ctx, fmt.Sprintf("ALTER TABLE purchase_history AUTO_INCREMENT = %d", FirstID)); err != nil {
			return 0, fmt.Errorf("have ids count from far: %w", err)
		}
		r.far = true
	}
	const next = "SELECT auto_increment FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'purchase_history'"
	if err = r.admin.QueryRowContext(ctx, next).Scan(&id); err != nil {
		return 0, fmt.Errorf("ask for the next id: %w", err)
	}
	return id, nil
}

func (r *mysqlRecords) Milliseconds() string {
	return "CAST(FLOOR(UNIX_TIMESTAMP(purchase_time) * 1000) AS SIGNED)"
}
