package draft

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var node = ecosystem{manifests: []string{"package.json"}, sources: ".[cm]js", read: readNode}

var (
	// builds matches a start command that runs compiled files.
	builds = regexp.MustCompile(`\b(?:dist|build|lib|out)/|\b(?:next|nuxt|remix) `)
	// migration matches the name of a script that applies the migrations.
	migration = regexp.MustCompile(`^(?:(?:db|prisma|knex|typeorm|sequelize|drizzle)[:-])?(?:migrate|migrations?:(?:run|up|latest)|migrate[:-](?:up|run|latest|deploy|prod)|deploy)$`)
	provider  = regexp.MustCompile(`datasource\s+\w+\s*\{[^}]*provider\s*=\s*"(\w+)"`)
	urlOf     = regexp.MustCompile(`datasource\s+\w+\s*\{[^}]*\burl\s*=\s*env\("(\w+)"\)`)
	dialect   = regexp.MustCompile(`(?i)\b(?:dialect|client)['"]?\s*[:=]\s*['"](mysql2?|mariadb|postgres(?:ql)?|pg)['"]`)
	dbType    = regexp.MustCompile(`(?s)(?:DataSource|TypeOrmModule|forRoot|createConnection).{0,200}?\btype\s*:\s*['"](mysql|mariadb|postgres)['"]`)
)

// nodeMigrations are the tools that migrate without a script in package.json. Their file or folder
// identifies them.
var nodeMigrations = []struct{ needs, command string }{
	{"prisma/migrations", "npx prisma migrate deploy"},
	{"knexfile.js", "npx knex migrate:latest"},
	{"knexfile.ts", "npx knex migrate:latest"},
	{".sequelizerc", "npx sequelize-cli db:migrate"},
	{"drizzle.config.ts", "npx drizzle-kit migrate"},
	{"prisma/schema.prisma", "npx prisma db push --skip-generate"},
}

func readNode(r *repository, d *Draft) {
	var p struct {
		Name         string            `json:"name"`
		Main         string            `json:"main"`
		Scripts      map[string]string `json:"scripts"`
		Dependencies map[string]string `json:"dependencies"`
	}
	install, run := packageManager(r)
	if r.json("package.json", &p) {
		d.Once = append(d.Once, install)
	}
	d.name(p.Name)
	d.dependsOn("package.json", slices.Sorted(maps.Keys(p.Dependencies)))
	readProcfile(r, d)
	for _, script := range []string{"start:prod", "start", "serve", "server", "dev"} {
		line := p.Scripts[script]
		if line == "" {
			continue
		}
		command := run + script
		if strings.HasPrefix(line, "node ") && !strings.ContainsAny(line, "&|;") {
			command = line // start node directly, without npm as its parent process
		}
		d.Run.guess(command, `package.json has "%s": "%s"`, script, line)
		if d.Run.Text == command && builds.MatchString(line) && p.Scripts["build"] != "" {
			d.Once = append(d.Once, run+"build")
		}
	}
	if p.Main != "" && r.has(p.Main) {
		d.Run.guess("node "+p.Main, `package.json has "main": "%s"`, p.Main)
	}
	for _, stem := range []string{"server", "index", "app", "main", "src/server", "src/index", "src/app", "src/main"} {
		if file := r.first(stem+".mjs", stem+".js", stem+".cjs"); file != "" {
			d.Run.guess("node "+file, "%s exists", file)
		}
	}
	schema := r.text("prisma/schema.prisma")
	if m := provider.FindStringSubmatch(schema); m != nil {
		d.uses(ofWord(m[1]), strong, `prisma/schema.prisma has provider "%s"`, m[1])
	}
	if m := urlOf.FindStringSubmatch(schema); m != nil {
		d.asked = append(d.asked, m[1])
	}
	files := r.match("**/*.js", "**/*.ts", "**/*.mjs", "**/*.cjs", "**/*.json")
	for _, expression := range []*regexp.Regexp{dialect, dbType} {
		if file, m := r.search(files, expression); m != nil {
			d.uses(ofWord(m[1]), strong, "%s has %s", file, m[1])
		}
	}
	for _, script := range slices.Sorted(maps.Keys(p.Scripts)) {
		if migration.MatchString(script) {
			d.Migrate.guess(run+script, `package.json has "%s": "%s"`, script, p.Scripts[script])
		}
	}
	for _, tool := range nodeMigrations {
		if r.has(tool.needs) {
			d.Migrate.guess(tool.command, "%s exists", tool.needs)
		}
	}
	if _, next := p.Dependencies["next"]; next {
		d.Port.guess("3000", "it is the port of Next.js")
	}
}

// packageManager returns the commands that install packages and run a script. The lock file determines
// them.
func packageManager(r *repository) (install, run string) {
	switch r.first("pnpm-lock.yaml", "yarn.lock") {
	case "pnpm-lock.yaml":
		return "pnpm install --frozen-lockfile", "pnpm run "
	case "yarn.lock":
		return "yarn install --frozen-lockfile", "yarn run "
	}
	return "npm ci", "npm run "
}
