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

// A Value is one value of the file.
type Value struct {
	Text    string
	Because string // the fact that suggests the value, such as `package.json has "start"`
}

// A Draft has the facts that a repository says about its program. The zero value of a field means that the repository
// does not say it.
type Draft struct {
	Name     string
	Found    []string // the files that identify the program's language, such as package.json
	Once     []string // commands to run once before the program can start
	Run      Value
	Slow     bool // the program takes longer than the default of ready-within to start
	Port     Value
	Ready    Value // path of a request that says that the program is ready; "": the port accepts connections
	Database *Server
	Redis    *Server
	Env      []Variable
	Schema   Value // file or folder of SQL
	Migrate  Value // command line that creates the tables
	Buy      *Route
	Others   []Route // further routes that look like a sale
	Stock    *Column
	Orders   Value // table

	evidence  map[*kind]Value  // strongest evidence for each kind of server; Text is its strength
	variables []Variable       // as the repository sets them, in its order
	asked     []string         // names of variables that the program reads
	urls      map[*kind]string // how the program's client library writes an address, if it is not the usual way
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
	Comment     string // "" if the value addresses a private server

	file string // that sets it
}

// A Column is a column of a table.
type Column struct {
	Table, Name string
	Because     string
	Gone        string // why an UPDATE may find no row, such as `server.js deletes these rows`; "": it finds one
}

// An ecosystem reads the files of one language.
type ecosystem struct {
	manifests []string // names of files that identify it
	sources   string   // how names of its source files end; identifies a program without a manifest
	read      func(*repository, *Draft)
}

// ecosystems lists the languages. A repository with the manifests of two belongs to the first: the
// others build its pages.
var ecosystems = []ecosystem{php, ruby, java, golang, python, node}

// sources read the facts that a repository in any language may have, stronger facts first. They run after
// the ecosystem. The functions after chooseServers know which servers the program uses.
var sources = []func(*repository, *Draft){
	readCompose, readDotenv, readEnvironment, readImports, readDumps, chooseServers,
	readSQL, readRoutes, readTables, findGone, readPorts, readReady, chooseEnv,
}

// Read reads the repository in root. name is the program's name if its files do not say it. The error
// concerns unreadable folders only: a repository that says nothing gives a Draft without values.
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

// readProgram reads how the program starts. The program is at the top, or in the only folder at the top
// that has one.
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

// ecosystem returns the language of the program, by a manifest or else by source files at the top.
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

// Below returns the folders at the top that have the manifest of a language, sorted: the programs of a
// repository with several.
func Below(root fs.FS) (folders []string) {
	for _, e := range ecosystems {
		for _, name := range e.manifests {
			found, _ := fs.Glob(root, "*/"+name) // the pattern is valid
			for _, file := range found {
				folder, _, _ := strings.Cut(file, "/")
				_, err := fs.Stat(root, file)
				if err == nil && !pages.MatchString(folder) { // no link to a file that is missing or outside
					folders = append(folders, folder)
				}
			}
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// guess sets a value unless an earlier fact did.
func (v *Value) guess(text, because string, args ...any) {
	if v.Text == "" && text != "" {
		*v = Value{Text: text, Because: fmt.Sprintf(because, args...)}
	}
}

// Strength of evidence for a kind of server.
const (
	weak   = "1" // a dependency, which the program may use or not
	fair   = "2" // an example value, or a container next to the program
	strong = "3" // the program's own setting
)

// uses records evidence that the program uses a kind of server; k may be nil.
func (d *Draft) uses(k *kind, strength, because string, args ...any) {
	if k != nil && strength > d.evidence[k].Text {
		d.evidence[k] = Value{Text: strength, Because: fmt.Sprintf(because, args...)}
	}
}

// dependsOn records the client libraries among a program's dependencies.
func (d *Draft) dependsOn(file string, names []string) {
	for _, name := range names {
		for _, k := range kinds {
			if k.hasClient(name) {
				d.uses(k, weak, "%s depends on %s", file, name)
			}
		}
	}
}

// chooseServers chooses the database with the strongest evidence.
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

// port returns the port of the program, for the addresses of the file.
func (d *Draft) port() string { return cmp.Or(d.Port.Text, "8080") }

// lower returns names as registries compare them: lower case, with hyphens.
func lower(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }
