package dialect

import "slices"

// A Level is a database at an isolation level that its sessions begin with.
type Level struct {
	Name  string // the word in the promises of the catalogue
	Title string // for people

	// RefusesStale: a write of a row that has changed since the transaction's snapshot is
	// refused.
	RefusesStale bool

	// Writers says how the shop's processes use the nodes of a cluster; "" where there is one
	// server.
	Writers string
}

// Levels are those that the catalogue promises by, in display order. What it promises of
// MariaDB it promises of MySQL.
func Levels() []Level {
	return []Level{
		{Name: SQLite, Title: "SQLite"},
		{Name: MySQL, Title: "MariaDB"},
		{Name: Postgres, Title: "PostgreSQL, READ COMMITTED"},
		{Name: PostgresRepeatableRead, Title: "PostgreSQL, REPEATABLE READ", RefusesStale: true}, // PostgreSQL 15 manual, 13.2.2
		{Name: PostgresSerializable, Title: "PostgreSQL, SERIALIZABLE", RefusesStale: true},
		{Name: Galera, Title: "Galera, three writers", Writers: "a writer at each node"},
		{Name: GaleraOneWriter, Title: "Galera, one writer", Writers: "one writer"},
	}
}

// LevelNamed is the level that the catalogue promises by under a name; one that it does
// not know refuses nothing.
func LevelNamed(name string) Level {
	all := Levels()
	if i := slices.IndexFunc(all, func(l Level) bool { return l.Name == name }); i >= 0 {
		return all[i]
	}
	return Level{Name: name, Title: name}
}
