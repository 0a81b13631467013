package main

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	maxPageWords   = 1500
	maxReadmeLines = 100
	maxTotalWords  = 45000
)

// pageMention finds a page that a comment, a message or a script names, except placeholders such
// as docs/NAME.md.
var pageMention = regexp.MustCompile(`(?:^|[^\w./-])(docs/[a-z\d_./-]+\.(?:md|yml|svg))(?:#([\w-]+))?`)

// check applies all rules to the files of a project.
func check(root fs.FS, paths []string) ([]finding, error) {
	var found []finding
	pages := map[string]*page{}
	mentions := map[string][]link{}
	for _, name := range paths {
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, err
		}
		if path.Ext(name) != ".md" {
			mentions[name] = pageMentions(string(source))
		}
		var text []paragraph
		switch path.Ext(name) {
		case ".md":
			pages[name] = parsePage(name, source)
			text = pages[name].paragraphs
		case ".go":
			if text, err = comments(source); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		for _, p := range text {
			found = append(found, p.check(name)...)
		}
	}
	found = append(found, checkPages(pages)...)
	for name, p := range pages {
		mentions[name] = p.links
	}
	found = append(found, checkLinks(paths, pages, mentions)...)
	slices.SortStableFunc(found, func(a, b finding) int {
		if a.file != b.file {
			return strings.Compare(a.file, b.file)
		}
		return a.line - b.line
	})
	return found, nil
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
		p := pages[name]
		if p.words > maxPageWords {
			found = append(found, finding{name, 1, "page", fmt.Sprintf("%d words; maximum %d", p.words, maxPageWords)})
		}
		for _, line := range p.wide {
			found = append(found, finding{name, line, "columns", fmt.Sprintf("the table has more than %d columns", maxColumns)})
		}
		for _, line := range p.unnamed {
			found = append(found, finding{name, line, "alt", "the picture has no alternative text"})
		}
		if strings.HasPrefix(name, "docs/") && !linked[name] {
			found = append(found, finding{name, 1, "unlinked", "no other page links to this page"})
		}
		if name == "README.md" && p.lines > maxReadmeLines {
			found = append(found, finding{name, 1, "readme", fmt.Sprintf("%d lines; maximum %d", p.lines, maxReadmeLines)})
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

// checkLinks reports links to files and anchors that do not exist.
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
