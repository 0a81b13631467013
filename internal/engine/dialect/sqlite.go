package dialect

// SQLite is the name of SQLite.
const SQLite = "sqlite"

// sqlite has one writer a file, and shows a commit when it is written.
func sqlite() Dialect { return Dialect{Name: SQLite} }
