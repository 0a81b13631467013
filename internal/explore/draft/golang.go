package draft

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

var golang = ecosystem{manifests: []string{"go.mod"}, sources: ".go", read: readGo}

var (
	mainFunction = regexp.MustCompile(`(?m)^package main\b(?s:.*)^func main\(\)`)
	serverFolder = regexp.MustCompile(`(?i)api|server|web|http|shop|app`)
)

func readGo(r *repository, d *Draft) {
	d.urls[mysql] = "root@tcp(127.0.0.1:3306)/shop?parseTime=true"
	if mod, err := modfile.ParseLax("go.mod", []byte(r.text("go.mod")), nil); err == nil && mod.Module != nil {
		d.name(path.Base(mod.Module.Mod.Path))
		var names []string
		for _, require := range mod.Require {
			if !require.Indirect {
				names = append(names, require.Mod.Path)
			}
		}
		d.dependsOn("go.mod", names)
	}
	var folders, files []string
	for _, file := range r.match("**/*.go") {
		if folder := path.Dir(file); !strings.HasSuffix(file, "_test.go") && !slices.Contains(folders, folder) && mainFunction.MatchString(r.text(file)) {
			folders, files = append(folders, folder), append(files, file)
		}
	}
	// Prefer the program at the top, then a program with a name such as server.
	i := slices.Index(folders, ".")
	if i < 0 {
		i = slices.IndexFunc(folders, func(folder string) bool { return serverFolder.MatchString(path.Base(folder)) })
	}
	if i < 0 && len(folders) > 0 {
		i = 0
	}
	if i >= 0 {
		target := "."
		if folders[i] != "." {
			target = "./" + folders[i]
		}
		d.Run.guess("./"+goBinary, "%s has func main", files[i])
		d.Once = append(d.Once, "go build -o "+goBinary+" "+target)
	}
	readProcfile(r, d)
}

// goBinary is the name of the compiled program. With `go run`, each buyer's instance would compile the
// program again.
const goBinary = "oversell-program"
