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

// packageMemory finds a variable of a package in the learner's folder; nil where there is none.
//
// The judge's buyers are processes of the shop, and live in one process of the system: a variable
// of a package would join what two processes never share, and hide the orders in which it goes wrong.
func packageMemory(dir string) (found *judge.Check, _ error) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || found != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil // that is the compiler's to say
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

// variable is the first of a file's that may change.
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

// fixed: the value is of a kind that nobody changes, an error or a script.
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
