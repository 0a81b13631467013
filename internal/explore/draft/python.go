package draft

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

var python = ecosystem{
	manifests: []string{"pyproject.toml", "requirements.txt", "Pipfile", "manage.py", "requirements/prod.txt", "requirements/production.txt", "requirements/base.txt"},
	sources:   ".py", read: readPython,
}

var (
	requirement = regexp.MustCompile(`(?m)^\s*([A-Za-z][\w.-]*)`)
	fastAPI     = regexp.MustCompile(`(?m)^(\w+)\s*(?::\s*\w+\s*)?=\s*FastAPI\(`)
	flask       = regexp.MustCompile(`(?m)^(\w+)\s*=\s*(?:Flask|create_app)\(|^def (create_app)\(`)
	djangoDB    = regexp.MustCompile(`django\.(?:contrib\.gis\.)?db\.backends\.(mysql|postgresql|postgis)`)
	djangoURL   = regexp.MustCompile(`\bdj_database_url\.config\(|\benv\.db\(\)`)
	serves      = regexp.MustCompile(`HTTPServer\(|serve_forever|\.run\(`)
	identifier  = regexp.MustCompile(`^[A-Za-z][\w-]*$`)
)

// pythonRunners lists, by lock file, how a tool runs a command in the program's environment.
var pythonRunners = []struct{ lock, runner, install string }{
	{"uv.lock", "uv run ", "uv sync"},
	{"poetry.lock", "poetry run ", "poetry install"},
	{"Pipfile.lock", "pipenv run ", "pipenv install"},
	{"requirements.txt", "", "pip install -r requirements.txt"},
}

func readPython(r *repository, d *Draft) {
	readPythonDependencies(r, d)
	runner := ""
	for _, one := range pythonRunners {
		if r.has(one.lock) {
			runner = one.runner
			d.Once = append(d.Once, one.install)
			break
		}
	}
	if file, m := r.search(r.match("**/*.py"), djangoDB); m != nil {
		d.uses(ofWord(m[1]), strong, "%s has %s", file, m[0])
	}
	if _, m := r.search(r.match("**/*.py"), djangoURL); m != nil {
		d.asked = append(d.asked, "DATABASE_URL")
	}
	readProcfile(r, d)
	flaskApp := readPythonProgram(r, d, runner)
	switch {
	case r.has("manage.py"):
		d.Migrate.guess(runner+"python3 manage.py migrate --noinput", "manage.py exists")
	case r.has("migrations/env.py") && flaskApp != "":
		d.Migrate.guess(runner+"flask --app "+flaskApp+" db upgrade", "migrations/env.py exists")
	default:
		if found := r.match("**/alembic.ini"); len(found) > 0 {
			command := runner + "alembic upgrade head"
			if folder := path.Dir(found[0]); folder != "." {
				command = "cd " + folder + " && " + command
			}
			d.Migrate.guess(command, "%s exists", found[0])
		}
	}
}

// readPythonProgram finds the command that starts the program. flaskApp is the module with a Flask app.
func readPythonProgram(r *repository, d *Draft, runner string) (flaskApp string) {
	files := r.match("**/*.py")
	if r.has("manage.py") {
		d.Run.guess(runner+"python3 manage.py runserver --noreload 127.0.0.1:8000", "manage.py exists")
		d.Port.guess("8000", "it is the port of Django")
		return ""
	}
	if file, m := r.search(files, fastAPI); m != nil {
		folder, inner := packageOf(r, file)
		if folder != "" {
			folder = " --app-dir " + folder
		}
		d.Run.guess(runner+"uvicorn "+moduleOf(inner)+":"+m[1]+folder+" --host 127.0.0.1 --port 8000", "%s has %s = FastAPI(", file, m[1])
		d.Port.guess("8000", "it is the port of uvicorn")
	}
	if file, m := r.search(files, flask); m != nil {
		flaskApp = strings.TrimSuffix(file, ".py")
		if strings.Contains(file, "/") {
			flaskApp = file // Flask itself finds the file's package
		}
		d.Run.guess(runner+"flask --app "+flaskApp+" run --port 5000", "%s has %s", file, strings.TrimSpace(m[0]))
		d.Port.guess("5000", "it is the port of Flask")
	}
	for _, file := range r.match("*.py") {
		if serves.MatchString(r.text(file)) {
			d.Run.guess(runner+"python3 "+file, "%s starts a server", file)
		}
	}
	return flaskApp
}

// packageOf splits the path of a file into the folder in which Python must start to import the file,
// and the path below that folder. The folder contains the file's outermost package. The folder is ""
// (the top of the repository) if the file is there, or imports packages by their path from there.
func packageOf(r *repository, file string) (folder, inner string) {
	top, _, nested := strings.Cut(file, "/")
	if !nested || regexp.MustCompile(`(?m)^\s*(?:from|import)\s+`+regexp.QuoteMeta(top)+`\b`).MatchString(r.text(file)) {
		return "", file
	}
	folder = path.Dir(file)
	for folder != "." && r.has(folder+"/__init__.py") {
		folder = path.Dir(folder)
	}
	if folder == "." || folder == path.Dir(file) && top != "src" {
		return "", file
	}
	return folder, strings.TrimPrefix(file, folder+"/")
}

func moduleOf(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(file, ".py"), "/__init__"), "/", ".")
}

// sqlAlchemy are the schemes that make SQLAlchemy load another client library than its default.
var sqlAlchemy = []struct {
	client string
	kind   *kind
	scheme string
}{
	{"pymysql", mysql, "mysql+pymysql"},
	{"asyncmy", mysql, "mysql+asyncmy"},
	{"aiomysql", mysql, "mysql+aiomysql"},
	{"mysql-connector-python", mysql, "mysql+mysqlconnector"},
	{"psycopg", postgres, "postgresql+psycopg"},
	{"asyncpg", postgres, "postgresql+asyncpg"},
}

func readPythonDependencies(r *repository, d *Draft) {
	var all []string
	add := func(file string, names []string) {
		d.dependsOn(file, names)
		for _, name := range names {
			all = append(all, lower(name))
		}
	}
	for _, file := range r.match("requirements.txt", "requirements/*.txt") {
		add(file, groups(requirement, r.text(file)))
	}
	var project struct {
		Project struct {
			Name         string   `toml:"name"`
			Dependencies []string `toml:"dependencies"`
		} `toml:"project"`
		Tool struct {
			Poetry struct {
				Name         string         `toml:"name"`
				Dependencies map[string]any `toml:"dependencies"`
			} `toml:"poetry"`
		} `toml:"tool"`
	}
	if toml.Unmarshal([]byte(r.text("pyproject.toml")), &project) == nil {
		d.name(project.Project.Name)
		d.name(project.Tool.Poetry.Name)
		var names []string
		for _, line := range project.Project.Dependencies {
			names = append(names, requirement.FindString(line))
		}
		add("pyproject.toml", append(names, slices.Sorted(maps.Keys(project.Tool.Poetry.Dependencies))...))
	}
	var pipfile struct {
		Packages map[string]any `toml:"packages"`
	}
	if toml.Unmarshal([]byte(r.text("Pipfile")), &pipfile) == nil {
		add("Pipfile", slices.Sorted(maps.Keys(pipfile.Packages)))
	}
	if slices.Contains(all, "sqlalchemy") || slices.Contains(all, "flask-sqlalchemy") || slices.Contains(all, "sqlmodel") {
		for _, one := range sqlAlchemy {
			if slices.Contains(all, one.client) {
				d.urls[one.kind] = one.kind.private(one.scheme + "://host/database")
			}
		}
	}
}

// name sets the program's name to the last part of a manifest's name, such as @acme/shop.
func (d *Draft) name(manifest string) {
	if name := path.Base(manifest); identifier.MatchString(name) {
		d.Name = name
	}
}
