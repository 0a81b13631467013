package dialect

// SQLite is the name of SQLite.
const SQLite = "sqlite"

// sqlite returns the dialect of SQLite, which has one writer per file and shows a commit once it is written.
func sqlite() Dialect { return Dialect{Name: SQLite} }
