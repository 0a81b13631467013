package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

var (
	directive = regexp.MustCompile(`^//(\w+:|\w+$|line )`)
	listItem  = regexp.MustCompile(`^\s*([-*•]|\d+[.)])\s+`)
	output    = regexp.MustCompile(`(?i)^//\s*(unordered )?output:`)
)

// comments returns the paragraphs of a Go file's comments, without code blocks, directives and
// the output of examples.
func comments(source []byte) ([]paragraph, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []paragraph
	for _, group := range file.Comments {
		all = append(all, groupParagraphs(fset, group)...)
	}
	return all, nil
}

func groupParagraphs(fset *token.FileSet, group *ast.CommentGroup) []paragraph {
	var all []paragraph
	open, item := false, false // whether the next line continues a paragraph, and whether that is a list item
	add := func(line int, text string) {
		marker := listItem.FindString(text)
		trimmed := strings.TrimSpace(strings.TrimPrefix(text, marker))
		indented := strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "   ")
		switch {
		case trimmed == "":
			open = false
		case marker != "":
			all = append(all, paragraph{line: line, text: trimmed})
			open, item = true, true
		case indented && !(open && item): // code
			open = false
		case open:
			all[len(all)-1].text += "\n" + trimmed
		default:
			all = append(all, paragraph{line: line, text: trimmed})
			open, item = true, false
		}
	}
	for _, c := range group.List {
		if output.MatchString(c.Text) {
			break
		}
		line := fset.Position(c.Pos()).Line
		if text, ok := strings.CutPrefix(c.Text, "//"); ok {
			if !directive.MatchString(c.Text) {
				add(line, strings.TrimPrefix(text, " "))
			}
			continue
		}
		for i, text := range strings.Split(strings.Trim(c.Text, "/*"), "\n") {
			add(line+i, strings.TrimSpace(text))
		}
	}
	return all
}
