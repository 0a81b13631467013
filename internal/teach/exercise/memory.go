package exercise

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oversell/oversell/exercises/judge"
)

// packageMemory returns a failed check if a package in the learner's folder has a package variable, and nil
// otherwise.
//
// The judge runs two shops for its buyers in one system process, but they stand for separate processes. They
// would share a package variable, which real processes do not, and that would hide schedules that go wrong.
func packageMemory(dir string) (found *judge.Check, _ error) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || found != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil // the compiler reports this error
		}
		if name := variable(file); name != nil {
			at := files.Position(name.Pos())
			found = &judge.Check{
				Name: "nothing but the servers is shared", Verdict: judge.Wrong,
				Why: fmt.Sprintf("%s:%d: %s is a variable of the package, memory that a second process of the shop does not have; what New returns may have fields, and a constant may stand there",
					filepath.Base(path), at.Line, name.Name),
			}
		}
		return nil
	})
	return found, err
}

// variable returns the first package variable of a file whose value may change.
func variable(file *ast.File) *ast.Ident {
	for _, d := range file.Decls {
		of, ok := d.(*ast.GenDecl)
		if !ok || of.Tok != token.VAR {
			continue
		}
		for _, spec := range of.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, name := range spec.Names {
				if name.Name != "_" && (i >= len(spec.Values) || !fixed(spec.Values[i])) {
					return name
				}
			}
		}
	}
	return nil
}

// fixed reports whether the value is a constant in practice: an error or a Redis script.
func fixed(value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok {
		return false
	}
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := of.X.(*ast.Ident)
	return ok && slices.Contains([]string{"errors.New", "fmt.Errorf", "redis.NewScript", "kata.SHA"}, from.Name+"."+of.Sel.Name)
}
