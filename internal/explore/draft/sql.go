package draft

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	createTable  = regexp.MustCompile(`(?i)\bCREATE\s+TABLE\b`)
	undo         = regexp.MustCompile(`(?:^|\.)down\.sql$|^U[\d._]+__`)
	schemaNames  = []string{"schema.sql", "structure.sql", "db.sql", "database.sql", "init.sql", "setup.sql", "create.sql", "tables.sql"}
	folderName   = regexp.MustCompile(`(?i)migrat|schema|^sql$|^db$|^database$|init`)
	migratesSelf = regexp.MustCompile(`(?i)flyway|liquibase`)
)

var dumps = map[*kind]*regexp.Regexp{
	postgres: regexp.MustCompile(`(?m)^-- PostgreSQL database dump`),
	mysql:    regexp.MustCompile(`(?m)^-- (?:MySQL|MariaDB) dump`),
}

// readDumps finds out which database has written an SQL file.
func readDumps(r *repository, d *Draft) {
	for k, header := range dumps {
		if file, m := r.search(r.match("**/*.sql"), header); m != nil {
			d.uses(k, fair, "%s begins with %q", file, m[0])
		}
	}
}

// readSQL finds the SQL file or folder that creates the tables. A migration command has precedence,
// since the program's developers use it.
func readSQL(r *repository, d *Draft) {
	if d.Migrate.Text != "" {
		return
	}
	var manifests strings.Builder
	for _, file := range r.match("**/pom.xml", "**/build.gradle", "**/build.gradle.kts") {
		manifests.WriteString(r.text(file))
	}
	byFolder := map[string]int{}
	var folders, files []string
	for _, file := range r.match("**/*.sql") {
		if undo.MatchString(path.Base(file)) || !createTable.MatchString(r.text(file)) {
			continue
		}
		files = append(files, file)
		folder := path.Dir(file)
		if path.Base(file) == "migration.sql" || path.Base(file) == "up.sql" { // each migration has a folder of its own
			folder = path.Dir(folder)
		}
		if byFolder[folder]++; byFolder[folder] == 1 {
			folders = append(folders, folder)
		}
	}
	folders, files = slices.DeleteFunc(folders, d.isOtherDatabase), slices.DeleteFunc(files, d.isOtherDatabase)
	for _, folder := range folders {
		if strings.Contains(folder, "/migration") && migratesSelf.MatchString(manifests.String()) {
			return // the program migrates when it starts
		}
		if folder != "." && folderName.MatchString(path.Base(folder)) && (byFolder[folder] > 1 || path.Base(folder) != "db") {
			d.Schema.guess(folder, "%s has SQL with CREATE TABLE", folder)
		}
	}
	for _, name := range schemaNames {
		for _, file := range files {
			if path.Base(file) == name {
				d.Schema.guess(file, "%s has CREATE TABLE", file)
			}
		}
	}
	if len(files) > 0 {
		if folder := path.Dir(files[0]); folder != "." && byFolder[folder] > 1 {
			d.Schema.guess(folder, "%s has SQL with CREATE TABLE", folder)
		}
		d.Schema.guess(files[0], "%s has CREATE TABLE", files[0])
	}
}

// foreign matches the names of databases for which the explorer has no gate.
var foreign = regexp.MustCompile(`(?i)\bh2\b|hsqldb|sqlite|oracle|mssql|sqlserver`)

// isOtherDatabase reports whether a path names a kind of database that the program does not use.
func (d *Draft) isOtherDatabase(name string) bool {
	k := ofWord(name)
	return foreign.MatchString(name) || k != nil && d.Database != nil && k != d.Database.kind
}
