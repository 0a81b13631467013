package dialect

// A Level is a database at an isolation level that its sessions begin with.
type Level struct {
	Name  string // the word in the promises of the catalogue
	Title string // for people
}

// Levels are those that the catalogue promises by, in display order. What it promises of
// MariaDB it promises of MySQL.
func Levels() []Level {
	return []Level{
		{SQLite, "SQLite"},
		{MySQL, "MariaDB"},
		{Postgres, "PostgreSQL, READ COMMITTED"},
		{PostgresRepeatableRead, "PostgreSQL, REPEATABLE READ"},
		{PostgresSerializable, "PostgreSQL, SERIALIZABLE"},
	}
}
