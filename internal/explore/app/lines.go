package app

import (
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// lines are line numbers in oversell.yaml, from 1. A report of a violation refers to them.
type lines struct {
	never []int // line of each rule of `never`
	buyer int   // line of the buyers' request, or of the requests of a scan
}

// linesOf finds the lines in a text that is valid YAML.
func linesOf(text []byte) (l lines) {
	l.buyer = 1
	file, err := parser.ParseBytes(text, 0)
	if err != nil { // cannot happen: the same library has decoded the text
		return l
	}
	for _, key := range []string{"requests", "buyers", "buyer"} {
		if node := at(file, "$."+key); node != nil {
			l.buyer = node.GetToken().Position.Line
		}
	}
	for n := 0; ; n++ {
		node := at(file, fmt.Sprintf("$.never[%d]", n))
		if node == nil {
			return l
		}
		l.never = append(l.never, node.GetToken().Position.Line)
	}
}

func at(file *ast.File, path string) ast.Node {
	p, err := yaml.PathString(path)
	if err != nil { // cannot happen: the paths are constants of this file
		return nil
	}
	node, err := p.FilterFile(file)
	if err != nil || node == nil || node.GetToken() == nil {
		return nil
	}
	return node
}

// Line returns the line of a rule of `never` in oversell.yaml, counted from 1. For "" and for an unknown
// rule it returns the line of the buyers' request.
func (a *App) Line(rule string) int {
	for n, query := range a.Never {
		if query == rule && n < len(a.lines.never) {
			return a.lines.never[n]
		}
	}
	return max(a.lines.buyer, 1)
}
