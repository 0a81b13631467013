package sqlerror

import (
	"errors"

	"github.com/go-sql-driver/mysql"
)

// mysqlKind classifies an error of MySQL or MariaDB. The numbers are listed at
// https://mariadb.com/kb/en/mariadb-error-code-reference/.
func mysqlKind(err error) (kind Kind, said bool) {
	var my *mysql.MySQLError
	if !errors.As(err, &my) {
		return Other, false
	}
	switch my.Number {
	case 1205, 1213, 1020: // ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK, ER_CHECKREAD (innodb_snapshot_isolation)
		return Contended, true
	case 1062: // ER_DUP_ENTRY
		return Duplicate, true
	case 1040, 1203, 1226, // too many connections: ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED
		1053, 1927, // ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED
		1047, 1180, // a Galera node without a majority: ER_UNKNOWN_COM_ERROR, ER_ERROR_DURING_COMMIT
		1021, 1114, // no room on the disk: ER_DISK_FULL, ER_RECORD_FILE_FULL
		1290, 1836: // read-only, after a failover: ER_OPTION_PREVENTS_STATEMENT, ER_READ_ONLY_MODE
		return Down, true
	}
	return Other, true
}

// mysqlAmbiguous reports whether an error leaves open whether a COMMIT took place. A Galera node that loses
// the other nodes during its COMMIT answers ER_ERROR_DURING_COMMIT. The other nodes may have received the
// transaction already, and then commit it.
func mysqlAmbiguous(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == 1180
}

func mysqlBroken(err error) bool { return errors.Is(err, mysql.ErrInvalidConn) }
