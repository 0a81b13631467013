package report

import (
	_ "embed"
	"html/template"
	"io"
	"path/filepath"
)

//go:embed page.html
var page string

func htmlFormat() Format {
	return Format{Ending: ".html", What: "one HTML page", Write: writeHTML}
}

func writeHTML(w io.Writer, d Document) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"in":    d.in,
		"class": class,
		"took":  rounded,
		"link":  d.link,
	}).Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, d)
}

func class(s Status) string {
	switch s {
	case Holds:
		return "holds"
	case Breaks:
		return "breaks"
	case Contradicts:
		return "contradiction"
	case Void, Failed:
		return "void"
	}
	return ""
}

// link returns a link to a file, relative to the page's folder.
func (d Document) link(file string) string {
	from, err1 := filepath.Abs(d.folder)
	to, err2 := filepath.Abs(file)
	link, err3 := filepath.Rel(from, to)
	if err1 != nil || err2 != nil || err3 != nil {
		return file
	}
	return filepath.ToSlash(link)
}
