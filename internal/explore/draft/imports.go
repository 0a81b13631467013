package draft

import "regexp"

var imports = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^\s*(?:import|from)\s+(\w+)`),
	regexp.MustCompile("(?m)(?:\\brequire\\(|\\bfrom|\\bimport|^\\s*_|^)\\s*['\"`]([\\w@./-]+)['\"`]"),
}

// dataSource matches the beginning of a data source name of JDBC or PDO. The group is the kind of
// server.
var dataSource = regexp.MustCompile(`["'](?:jdbc:)?(mysql|mariadb|postgresql|pgsql):`)

// readImports looks for client libraries in the source files of a program without a manifest.
func readImports(r *repository, d *Draft) {
	if len(d.evidence) > 0 {
		return
	}
	for _, file := range r.sourceFiles() {
		text := r.text(file)
		for _, expression := range imports {
			d.clients(file, "imports", groups(expression, text))
		}
		if m := dataSource.FindStringSubmatch(text); m != nil {
			d.uses(ofScheme(m[1]), weak, "%s has %s", file, m[0])
		}
	}
}
