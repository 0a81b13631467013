package witness

import (
	"html/template"
	"io"
)

// page is self-contained: it loads no script, font or other resource.
var page = template.Must(template.New("witness").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; color: #1b1b1f; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { border: 1px solid #cfcfd6; padding: .35rem .6rem; text-align: left; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums }
code { font: 13px/1.4 ui-monospace, monospace; overflow-wrap: anywhere }
.event td { background: #fff3d6 } .note { color: #a11 } .result { color: #335 }
.verdict { font-size: 1.2rem } .broken { color: #a11 }
@media (prefers-color-scheme: dark) { body { color: #e6e6ea; background: #17171b } th, td { border-color: #44444c } .event td { background: #4a3b12 } .note, .broken { color: #ff8a80 } .result { color: #a8b8ff } }
</style></head><body>
<h1>{{.Title}}</h1>
<p>{{.Extent}}</p>
{{range .Notes}}<p>{{.}}</p>
{{end}}{{with .Witness}}<p class="verdict{{if .Broken}} broken{{end}}"><b>{{.Verdict}}</b>{{if not .Findings}}: {{.Why}}{{end}}</p>
<table><thead><tr><th>step</th>{{range $.Buyers}}<th>buyer {{.}}</th>{{end}}{{range $.Witness.Columns}}<th>{{.}}</th>{{end}}</tr></thead><tbody>
{{range $r := .PeopleRows}}<tr{{if $.Event $r}} class="event"{{end}}><td class="n">{{.Number}}</td>
{{- range $.Buyers}}<td>{{if $.In $r .}}{{range $i, $s := $r.Steps}}{{if $i}}<br>{{end}}<code>{{$.Brief $s}}</code>{{with $s.Result}}<br><span class="result">&rarr; {{.}}</span>{{end}}{{with $s.Note}}<br><span class="note">{{.}}</span>{{end}}{{end}}{{end}}</td>{{end -}}
{{range $.Values $r}}<td class="n">{{.}}</td>{{end}}</tr>
{{end}}</tbody></table>{{with .Omission}}
<p>{{.}}</p>{{end}}{{range .Findings}}
<p class="broken">{{$.Returns}}<code>{{.Query}}</code></p>
<table><thead><tr>{{range .Columns}}<th>{{.}}</th>{{end}}</tr></thead><tbody>
{{range .Shown}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</tbody></table>{{with .More}}<p>{{.}}</p>{{end}}{{end}}
<ul>{{range .Outcomes}}<li>buyer {{.Buyer}}: {{.Answer}}</li>{{end}}</ul>
<p>Again: <code>{{$.Again}}</code></p>{{end}}
</body></html>
`))

type view struct {
	Title, Extent, Again string
	Notes                []string
	Witness              *Witness
	Buyers               []int
}

func (view) Returns() string { return returns }

// In reports whether the row is in a buyer's column. An event without a buyer is in the first column.
func (view) In(r Row, buyer int) bool { return r.Buyer() == buyer || r.Buyer() == 0 && buyer == 1 }

// Event reports whether the row is an event, which has no command.
func (view) Event(r Row) bool { return r.Buyer() == 0 || len(r.Steps) == 1 && r.Steps[0].Server == "" }

func (v view) Brief(s Step) string { return v.Witness.brief(s) }

func (v view) Values(r Row) []string { return v.Witness.Values(r.last()) }

// writeHTML writes the first witness, if there is one.
func writeHTML(out io.Writer, d Document) error {
	v := view{Title: d.Title, Extent: d.Summary, Notes: d.Notes, Again: d.Broken.Replay, Witness: d.Broken.Witness}
	for i := range d.Buyers {
		v.Buyers = append(v.Buyers, i+1)
	}
	return page.Execute(out, v)
}
