// Package prose checks the language of the Markdown pages and the Go comments of this repository, and the
// links between the pages. TestProject reports each breach as FILE:LINE: rule: the sentence.
//
// The tool Vale has such rules too. But it finds no sentences in a Go comment, so two of the three rules
// would not apply, and it reads code as text. As a Go module (github.com/vale-cli/vale/v3 v3.21.0) it has 396
// packages, needs a C compiler, and builds in 73 s of processor time on 2026-11-28. This package builds in
// seconds.
package prose

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	maxPageWords  = 1500
	maxTotalWords = 45000
)

var (
	// pageMention finds a page that a comment, a message or a script names, except placeholders such
	// as docs/NAME.md.
	pageMention = regexp.MustCompile(`(?:^|[^\w./-])(docs/[a-z\d_./-]+\.(?:md|yml|svg))(?:#([\w-]+))?`)
	// output begins the output of an example.
	output = regexp.MustCompile(`(?im)^(unordered )?output:`)
)

func check(root fs.FS, paths []string) ([]finding, error) {
	var found []finding
	pages := map[string]*page{}
	links := map[string][]link{}
	for _, name := range paths {
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, err
		}
		var text []paragraph
		switch path.Ext(name) {
		case ".md":
			p := parsePage(name, source)
			pages[name], links[name], text = p, p.links, p.paragraphs
		case ".go":
			if text, err = comments(source); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			fallthrough
		default:
			links[name] = pageMentions(string(source))
		}
		for _, p := range text {
			found = append(found, p.check(name)...)
		}
	}
	found = append(found, checkPages(pages)...)
	found = append(found, checkLinks(paths, pages, links)...)
	slices.SortStableFunc(found, func(a, b finding) int {
		if a.file != b.file {
			return strings.Compare(a.file, b.file)
		}
		return a.line - b.line
	})
	return found, nil
}

// comments returns the paragraphs of a Go file's comments. For this check, a comment consists of
// paragraphs, lists and indented code, as in Markdown.
func comments(source []byte) ([]paragraph, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []paragraph
	for _, group := range file.Comments {
		text := group.Text() // without directives
		if at := output.FindStringIndex(text); at != nil {
			text = text[:at[0]]
		}
		for _, p := range parsePage("", []byte(text)).paragraphs {
			p.line += fset.Position(group.Pos()).Line - 1
			p.heading = false
			all = append(all, p)
		}
	}
	return all, nil
}

// checkPages applies the limits of a page, and of all pages together.
func checkPages(pages map[string]*page) []finding {
	var found []finding
	linked := map[string]bool{}
	total := 0
	for name, p := range pages {
		total += p.words
		for _, l := range p.links {
			if l.file != name {
				linked[l.file] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if n := pages[name].words; n > maxPageWords {
			found = append(found, finding{name, 1, "page", fmt.Sprintf("%d words; maximum %d", n, maxPageWords)})
		}
		if strings.HasPrefix(name, "docs/") && !linked[name] {
			found = append(found, finding{name, 1, "unlinked", "no other page links to this page"})
		}
	}
	if total > maxTotalWords {
		found = append(found, finding{"*.md", 1, "total", fmt.Sprintf("all pages together have %d words; maximum %d", total, maxTotalWords)})
	}
	return found
}

// pageMentions returns the pages that a file names outside Markdown.
func pageMentions(source string) []link {
	var all []link
	for _, m := range pageMention.FindAllStringSubmatchIndex(source, -1) {
		l := link{line: 1 + strings.Count(source[:m[2]], "\n"), target: source[m[2]:m[1]], file: source[m[2]:m[3]]}
		if m[4] >= 0 {
			l.anchor = source[m[4]:m[5]]
		}
		all = append(all, l)
	}
	return all
}

func checkLinks(paths []string, pages map[string]*page, links map[string][]link) []finding {
	exists := map[string]bool{".": true}
	for _, name := range paths {
		for ; name != "."; name = path.Dir(name) {
			exists[name] = true
		}
	}
	var found []finding
	for from, all := range links {
		for _, l := range all {
			p := pages[l.file]
			if !exists[l.file] || p != nil && l.anchor != "" && !p.anchors[l.anchor] {
				found = append(found, finding{from, l.line, "link", l.target + " does not exist"})
			}
		}
	}
	return found
}
