// Package migrations holds the schema as numbered SQL, one folder a dialect,
// embedded in the binary. The files are never edited once released; a change
// is a new number. internal/engine runs them with goose.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed mysql/*.sql postgres/*.sql sqlite/*.sql
var files embed.FS

// For returns the migrations of one dialect, by its folder. An unknown
// dialect is a programming error and gives an error from fs.Sub's reader.
func For(dialect string) (fs.FS, error) {
	return fs.Sub(files, dialect)
}
