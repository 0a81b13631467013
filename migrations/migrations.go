// Package migrations contains the schema as numbered SQL files, embedded in the binary, in one
// folder for each dialect. A released file is never edited; a change gets a new number.
// internal/engine runs the files with goose.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed mysql/*.sql postgres/*.sql sqlite/*.sql
var files embed.FS

// For returns the migrations for one dialect. For an unknown dialect, a programming error, every read from
// the result fails.
func For(dialect string) (fs.FS, error) {
	return fs.Sub(files, dialect)
}
