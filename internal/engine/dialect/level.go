package dialect

import "slices"

// A Level is a database together with the default isolation level of its sessions.
type Level struct {
	Name  string // name of the database in the catalogue of strategies
	Title string // name in texts for users

	// RefusesStale means that the server refuses to update a row that another transaction has changed since
	// this transaction's snapshot.
	RefusesStale bool
}

// Levels returns the databases for which the catalogue promises something, in display order. The promises for
// MariaDB also apply to MySQL.
func Levels() []Level {
	return []Level{
		{Name: SQLite, Title: "SQLite"},
		{Name: MySQL, Title: "MariaDB"},
		{Name: Postgres, Title: "PostgreSQL, READ COMMITTED"},
		{Name: PostgresRepeatableRead, Title: "PostgreSQL, REPEATABLE READ", RefusesStale: true}, // PostgreSQL 15 manual, 13.2.2
		{Name: PostgresSerializable, Title: "PostgreSQL, SERIALIZABLE", RefusesStale: true},
		{Name: Galera, Title: "Galera"},
	}
}

// LevelNamed returns the level with a name. For an unknown name, RefusesStale is false.
func LevelNamed(name string) Level {
	all := Levels()
	if i := slices.IndexFunc(all, func(l Level) bool { return l.Name == name }); i >= 0 {
		return all[i]
	}
	return Level{Name: name, Title: name}
}
