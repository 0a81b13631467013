package app

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// schemaFiles returns the SQL files of `schema`: the file itself, or the files of a folder, sorted by
// version. It leaves out files that undo a migration.
func schemaFiles(path string) (files []string, _ error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(file, ".sql") && !undoes.MatchString(filepath.Base(file)) {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no file of SQL", path)
	}
	slices.SortFunc(files, compareVersions)
	return files, nil
}

// undoes matches the name of a file that undoes a migration: NAME.down.sql of golang-migrate, down.sql
// of Diesel, and U1__NAME.sql of Flyway.
var undoes = regexp.MustCompile(`(?:^|\.)down\.sql$|^U[\d._]+__`)

var digits = regexp.MustCompile(`\d+`)

// compareVersions compares two names. It compares numbers in them by value, so V10 follows V9.
func compareVersions(a, b string) int {
	padded := func(name string) string {
		return digits.ReplaceAllStringFunc(name, func(number string) string {
			n, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				return number
			}
			return fmt.Sprintf("%020d", n)
		})
	}
	return strings.Compare(padded(a), padded(b))
}

// downPart matches the part of a migration file that undoes the migration, to the end of the file: for
// goose, dbmate and sql-migrate.
var downPart = regexp.MustCompile(`(?ims)^--\s*(?:\+goose Down|migrate:down|\+migrate Down)\b.*`)

type script struct {
	name string // path below the folder, or the name of the only file
	dir  string // its folder
	text string
}

// readSchema returns the SQL of `schema`, without the parts that undo it.
func readSchema(path string) (scripts []script, _ error) {
	files, err := schemaFiles(path)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		if why := unreadable(text); why != "" {
			return nil, fmt.Errorf("schema: %s %s", file, why)
		}
		name := filepath.Base(file)
		if file != path {
			name, _ = filepath.Rel(path, file)
		}
		scripts = append(scripts, script{name, filepath.Dir(file), downPart.ReplaceAllString(string(text), "")})
	}
	return scripts, nil
}

// unreadable returns the reason why a file cannot be SQL; "" if it may be SQL.
func unreadable(text []byte) string {
	for magic, why := range map[string]string{
		"PGDMP":      "is an archive of pg_dump; turn it into SQL with: pg_restore -f schema.sql FILE",
		"\x1f\x8b":   "is compressed; unpack it with gunzip",
		"(\xb5/\xfd": "is compressed; unpack it with unzstd",
	} {
		if strings.HasPrefix(string(text), magic) {
			return why
		}
	}
	return ""
}

// run runs the script with a client of the server, in the script's folder, and returns the client's
// output.
func (s script) run(client *exec.Cmd, text string) (out, messages string, err error) {
	var stdout, stderr strings.Builder
	client.Dir, client.Stdin, client.Stdout, client.Stderr = s.dir, strings.NewReader(text), &stdout, &stderr
	err = client.Run()
	return stdout.String(), stderr.String(), err
}

func lastLine(out string) string {
	out = strings.TrimSpace(out)
	return out[strings.LastIndexByte(out, '\n')+1:]
}

// failed returns an error in one line: the client's message, or err if there is none.
func (s script) failed(client *exec.Cmd, err error, said string) error {
	if said == "" {
		said = err.Error()
	}
	return fmt.Errorf("schema: %s: %s: %s", s.name, filepath.Base(client.Path), oneLine(said))
}
