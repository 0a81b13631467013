package dialect

import "slices"

// A Level is a database with the default isolation level of its sessions.
type Level struct {
	Name  string // name in the promises of the catalogue
	Title string // name for people

	// RefusesStale means that the server refuses to write a row that has changed since the
	// transaction's snapshot.
	RefusesStale bool
}

// Levels returns the databases that have promises in the catalogue, in display order. The promises
// for MariaDB also apply to MySQL.
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

// LevelNamed returns the level with a name. An unknown name returns a level that refuses nothing.
func LevelNamed(name string) Level {
	all := Levels()
	if i := slices.IndexFunc(all, func(l Level) bool { return l.Name == name }); i >= 0 {
		return all[i]
	}
	return Level{Name: name, Title: name}
}
