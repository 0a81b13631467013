package draft

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Value is one value in oversell.yaml.
type Value struct {
	Text    string
	Because string // the fact that suggests the value, such as `package.json has "start"`
}

// A Draft holds the facts that a repository tells about its program. The zero value of a field means
// that the repository does not tell.
type Draft struct {
	Name     string
	Found    []string // the files that identify the program's language, such as package.json
	Once     []string // commands to run once before the program can start
	Run      Value
	Slow     bool // the program takes longer than the default of ready-within to start
	Port     Value
	Ready    Value // path that answers when the program is ready; "": the program is ready when the port accepts connections
	Database *Server
	Redis    *Server
	Env      []Variable
	Schema   Value // file or folder of SQL
	Migrate  Value // command line that creates the tables
	Buy      *Route
	Others   []Route // further routes that look like a sale
	Stock    *Column
	Orders   Value // table of the orders

	evidence  map[*kind]Value  // strongest evidence for each kind of server; Text is the strength
	variables []Variable       // variables that the repository sets, in the same order
	asked     []string         // names of variables that the program reads
	urls      map[*kind]string // address of the server in the notation of the program's client library, if not the usual one
	profiles  map[*kind]string // Spring's profile for a kind of database
}

// A Server is a server that the program uses.
type Server struct {
	kind    *kind
	Because string
}

// A Variable is an environment variable of the program.
type Variable struct {
	Name, Value string
	Comment     string // a comment for the file; "" if the value addresses a private server

	file string // the file that sets it
}

// A Column is a column of a table.
type Column struct {
	Table, Name string
	Because     string
	Gone        string // reason why an UPDATE may find no row, such as `server.js deletes these rows`; "": there is none
}

// An ecosystem reads the files of one language.
type ecosystem struct {
	manifests []string // names of files that identify it
	sources   string   // endings of its source files' names, which identify a program without a manifest
	read      func(*repository, *Draft)
}

// ecosystems lists the languages. If a repository contains the manifests of several languages, the
// first in this list counts, since the others usually build its web pages.
var ecosystems = []ecosystem{php, ruby, java, golang, python, node}

// sources read facts that do not depend on the language, stronger facts first. They run after the
// program's ecosystem. The functions after chooseServers can use d.Database and d.Redis.
var sources = []func(*repository, *Draft){
	readCompose, readDotenv, readEnvironment, readImports, readDumps, chooseServers,
	readSQL, readRoutes, readTables, findGone, readPorts, readReady, chooseEnv,
}

// Read reads the repository in root. The parameter `name` is the program's name, unless its files contain one. Read
// fails only for an unreadable folder. If a repository contains no facts, the Draft has no values.
func Read(root fs.FS, name string) (*Draft, error) {
	r, err := open(root)
	if err != nil {
		return nil, err
	}
	d := &Draft{Name: name, evidence: map[*kind]Value{}, urls: map[*kind]string{}, profiles: map[*kind]string{}}
	if err := d.readProgram(r); err != nil {
		return nil, err
	}
	for _, read := range sources {
		read(r, d)
	}
	return d, nil
}

// readProgram reads how the program starts. It looks at the top of the repository, and then in the only
// folder at the top that contains a program.
func (d *Draft) readProgram(r *repository) error {
	if e := r.ecosystem(d); e != nil {
		e.read(r, d)
		return nil
	}
	folders := Below(r.root)
	if len(folders) != 1 {
		return nil
	}
	root, err := fs.Sub(r.root, folders[0])
	if err != nil {
		return err
	}
	inner, err := open(root)
	if err != nil {
		return err
	}
	inner.ecosystem(d).read(inner, d)
	for _, command := range []*string{&d.Run.Text, &d.Migrate.Text} {
		if *command != "" {
			*command = "cd " + folders[0] + " && " + *command
		}
	}
	for i := range d.Once {
		d.Once[i] = "cd " + folders[0] + " && " + d.Once[i]
	}
	for i := range d.Found {
		d.Found[i] = path.Join(folders[0], d.Found[i])
	}
	return nil
}

// ecosystem returns the language of the program. A manifest determines it, or else source files at the
// top.
func (r *repository) ecosystem(d *Draft) *ecosystem {
	for i := range ecosystems {
		for _, name := range ecosystems[i].manifests {
			if r.has(name) {
				d.Found = append(d.Found, name)
			}
		}
		if d.Found != nil {
			return &ecosystems[i]
		}
	}
	for i := range ecosystems {
		if files := r.match("*" + ecosystems[i].sources); len(files) > 0 {
			d.Found = files[:1]
			return &ecosystems[i]
		}
	}
	return nil
}

// pages matches the names of folders with a program that runs in a browser or on a phone.
var pages = regexp.MustCompile(`(?i)^(?:front-?end|client|ui|mobile|android|ios|admin-?ui|website|e2e|docs?)$`)

// Below returns the folders at the top that contain the manifest of a language, sorted. They are the
// programs of a repository with several programs.
func Below(root fs.FS) (folders []string) {
	for _, e := range ecosystems {
		for _, name := range e.manifests {
			found, _ := fs.Glob(root, "*/"+name) // the pattern is valid
			for _, file := range found {
				folder, _, _ := strings.Cut(file, "/")
				_, err := fs.Stat(root, file)
				if err == nil && !pages.MatchString(folder) { // Stat fails for a link to a missing file or out of the repository
					folders = append(folders, folder)
				}
			}
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// guess sets a value unless an earlier fact has set it.
func (v *Value) guess(text, because string, args ...any) {
	if v.Text == "" && text != "" {
		*v = Value{Text: text, Because: fmt.Sprintf(because, args...)}
	}
}

// Strength of evidence for a kind of server.
const (
	weak   = "1" // a dependency, which the program perhaps does not use
	fair   = "2" // an example value, or a container next to the program
	strong = "3" // the program's own setting
)

// uses records evidence that the program uses a kind of server. A nil k is ignored.
func (d *Draft) uses(k *kind, strength, because string, args ...any) {
	if k != nil && strength > d.evidence[k].Text {
		d.evidence[k] = Value{Text: strength, Because: fmt.Sprintf(because, args...)}
	}
}

func (d *Draft) dependsOn(file string, names []string) { d.clients(file, "depends on", names) }

// clients records the client libraries among `names`, which a file contains. The verb `has` is for
// messages: "depends on".
func (d *Draft) clients(file, has string, names []string) {
	for _, name := range names {
		for _, k := range kinds {
			if k.hasClient(name) {
				d.uses(k, weak, "%s %s %s", file, has, name)
			}
		}
	}
}

func chooseServers(_ *repository, d *Draft) {
	for _, k := range kinds {
		e, found := d.evidence[k]
		switch {
		case !found:
		case k == redis:
			d.Redis = &Server{k, e.Because}
		case d.Database == nil || e.Text > d.evidence[d.Database.kind].Text:
			d.Database = &Server{k, e.Because}
		}
	}
	for _, k := range []*kind{mysql, postgres} {
		if e, found := d.evidence[k]; found && d.Database.kind != k && e.Text == d.evidence[d.Database.kind].Text {
			d.Database.Because += "; or " + k.key + ": " + e.Because
		}
	}
}

func (d *Draft) port() string { return cmp.Or(d.Port.Text, "8080") }

// lower returns a name in the form in which registries compare names: lower case, with hyphens.
func lower(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }
