package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// errAccessDenied is MySQL's ER_SPECIFIC_ACCESS_DENIED_ERROR: a privilege is missing.
const errAccessDenied = 1227

// checkProcess refuses a user of MySQL that may not see which connections wait for a lock. Without the
// privilege PROCESS, the user cannot run SHOW ENGINE INNODB STATUS, and sees only its own connections
// in the process list.
func checkProcess(ctx context.Context, db *sql.DB, address string) error {
	if db == nil {
		return nil
	}
	var user string
	err := within(ctx, func(ctx context.Context) error {
		if err := db.QueryRowContext(ctx, "SELECT CURRENT_USER()").Scan(&user); err != nil {
			return err
		}
		rows, err := db.QueryContext(ctx, "SHOW ENGINE INNODB STATUS")
		if err != nil {
			return err
		}
		return rows.Close()
	})
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == errAccessDenied {
		name, host, _ := strings.Cut(user, "@")
		return fmt.Errorf("mysql at %s: the user %s lacks the privilege PROCESS, which shows the waits for locks: GRANT PROCESS ON *.* TO '%[2]s'@'%s'; or name another user in the file, mysql://user:password@%[1]s/shop",
			address, name, host)
	}
	return err
}

// mayFollow asks whether the explorer's user has the rights of another session's user, or may see and end the waits
// of all users (PostgreSQL 15 manual, 22.5 and 28.2.3). Only a superuser may end the waits of a superuser.
const mayFollow = `SELECT current_user, a.usename, pg_has_role(a.usesysid, 'USAGE')
	OR NOT r.rolsuper AND pg_has_role('pg_read_all_stats', 'USAGE') AND pg_has_role('pg_signal_backend', 'USAGE')
	FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid WHERE a.pid = $1::int`

// MayFollow returns nil if the explorer's user may see and end the waits of the program's connection. The parameter
// `id` is the server's number for the connection, or 0 if unknown. The error is one line. MayFollow always returns
// nil for MySQL, since Open has checked it, and for Redis, which needs no such right.
func (s *Servers) MayFollow(ctx context.Context, protocol string, id int64) error {
	if protocol != "postgres" || id == 0 {
		return nil
	}
	var user, program string
	var may bool
	err := ask(ctx, func(ctx context.Context) error {
		return s.databases[protocol].QueryRowContext(ctx, mayFollow, id).Scan(&user, &program, &may)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows): // the connection has ended
		return nil
	case err != nil:
		return fmt.Errorf("postgres at %s: %w", s.addresses[protocol], err)
	case !may:
		return fmt.Errorf("postgres at %s: the user %s can neither see nor end the waits of the program's user %s: name %[3]s or a superuser in the file, postgres://user:password@%[1]s/shop; or, unless %[3]s is a superuser: GRANT pg_read_all_stats, pg_signal_backend TO %[2]s",
			s.addresses[protocol], user, program)
	}
	return nil
}
