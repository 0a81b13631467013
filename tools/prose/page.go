package prose

import (
	"bytes"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

var (
	markdown = goldmark.New(goldmark.WithExtensions(extension.Table))
	htmlLink = regexp.MustCompile(`\b(?:href|src)="([^"]+)"`)
)

// A page is one Markdown file.
type page struct {
	name       string
	words      int // number of words, as wc -w counts them
	paragraphs []paragraph
	links      []link
	anchors    map[string]bool
}

// A link is a place in a page that leads to another place of this project.
type link struct {
	line   int
	target string // as written
	file   string // relative to the project
	anchor string // without the #; may be empty
}

func parsePage(name string, source []byte) *page {
	p := &page{name: name, words: len(strings.Fields(string(source))), anchors: map[string]bool{}}
	ast.Walk(markdown.Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		line := 1
		if n.Type() == ast.TypeBlock && n.Lines().Len() > 0 {
			line = lineAt(source, n.Lines().At(0).Start)
		}
		switch n := n.(type) {
		case *ast.Blockquote:
			return ast.WalkSkipChildren, nil
		case *ast.HTMLBlock:
			for _, m := range htmlLink.FindAllSubmatch(n.Lines().Value(source), -1) {
				p.addLink(line, string(m[1]))
			}
		case *ast.Heading:
			p.readText(n, source, line, true)
			p.addAnchor(slug(inlineText(n, source)))
		case *tables.TableCell:
			_, header := n.Parent().(*tables.TableHeader)
			p.readText(n, source, line, header)
		case *ast.Paragraph, *ast.TextBlock:
			p.readText(n, source, line, false)
		}
		return ast.WalkContinue, nil
	})
	return p
}

// lineAt returns the line number of the byte at offset.
func lineAt(source []byte, offset int) int {
	return 1 + bytes.Count(source[:offset], []byte("\n"))
}

func (p *page) readText(n ast.Node, source []byte, line int, heading bool) {
	p.paragraphs = append(p.paragraphs, paragraph{line, inlineText(n, source), heading})
	ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			line = lineAt(source, n.Segment.Stop)
			if n.SoftLineBreak() || n.HardLineBreak() {
				line++
			}
		case *ast.Link:
			p.addLink(line, string(n.Destination))
		case *ast.Image:
			p.addLink(line, string(n.Destination))
		}
		return ast.WalkContinue, nil
	})
}

// inlineText returns the text below a block, with code in backquotes and without HTML.
func inlineText(block ast.Node, source []byte) string {
	var b strings.Builder
	ast.Walk(block, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.CodeSpan:
			b.WriteByte('`')
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte('\n')
				}
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// addLink stores a link that leads to a place in this project.
func (p *page) addLink(line int, target string) {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		p.links = append(p.links, link{line, target, "", ""})
	case u.Scheme != "" || u.Host != "": // a link to another site
	case u.Path == "":
		p.links = append(p.links, link{line, target, p.name, u.Fragment})
	default:
		p.links = append(p.links, link{line, target, path.Join(path.Dir(p.name), u.Path), u.Fragment})
	}
}

// addAnchor numbers repeated headings as GitHub does.
func (p *page) addAnchor(anchor string) {
	unique := anchor
	for i := 1; p.anchors[unique]; i++ {
		unique = anchor + "-" + strconv.Itoa(i)
	}
	p.anchors[unique] = true
}

// slug returns the anchor that GitHub gives to a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '\n':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
