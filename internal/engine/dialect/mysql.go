package dialect

// MySQL is the name of MySQL and MariaDB.
const MySQL = "mysql"

// mysql returns the dialect of MySQL and MariaDB. InnoDB releases the locks of a transaction in memory before
// it flushes the log, so it shows commits early (trx0trx.cc: trx_commit_in_memory, trx_flush_log_if_needed).
// The status variable in RowWaits counts the waits in all databases of the server. It is current, while the
// table information_schema.innodb_trx is cached.
func mysql() Dialect {
	return Dialect{
		Name: MySQL, RowLocks: true, ShowsEarly: true, RowWaits: "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'",
		// The server keeps the last statement only if the performance schema is enabled.
		OpenTransactions: `SELECT CONCAT('connection ', p.id, ' has been idle for ', p.time, ' s in a transaction that has locked ', t.trx_rows_locked, ' rows and written ', t.trx_rows_modified)
			FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE p.command = 'Sleep'`,
	}
}
