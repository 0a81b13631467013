package draft

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"text/template"
	"unicode"

	"github.com/goccy/go-yaml"

	"github.com/oversell/oversell/internal/explore/app"
)

//go:embed oversell.yaml.tmpl
var fileText string

var file = template.Must(template.New("oversell.yaml").Funcs(template.FuncMap{
	"scalar": scalar, "comment": comment, "guess": guessed, "fill": filled,
}).Parse(fileText))

// YAML returns the file that describes the program. A value that may be wrong is followed by
// app.GuessMark and the reason. app.Placeholder stands for a value that the repository does not tell.
func (d *Draft) YAML() ([]byte, error) {
	var b bytes.Buffer
	if err := file.Execute(&b, rendering{d}); err != nil {
		return nil, fmt.Errorf("write the draft: %w", err)
	}
	return b.Bytes(), nil
}

// A rendering adds the methods of the template to a draft.
type rendering struct{ *Draft }

// scalar returns a text as a YAML value in one line, with quotes if YAML needs them. In double quotes,
// it uses the escapes of JSON.
func scalar(text string) (string, error) {
	text = strings.ToValidUTF8(text, "?")
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		double := `"` + text + `"`
		if strings.ContainsAny(text, `"\`) {
			double = ""
		}
		for _, value := range []string{text, double, "'" + strings.ReplaceAll(text, "'", "''") + "'"} {
			var read struct {
				Value any `yaml:"value"`
			}
			if yaml.Unmarshal([]byte("value: "+value+"   # comment\n"), &read) == nil && read.Value == text {
				return value, nil
			}
		}
	}
	quoted, err := json.Marshal(text)
	return string(quoted), err
}

// comment returns a text without line breaks and control characters, for a comment.
func comment(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text))
	if len(runes) > maxReason {
		return string(runes[:maxReason]) + "..."
	}
	return string(runes)
}

const maxReason = 120

// guessed returns the comment for a value that may be wrong.
func guessed(because string) string {
	return "   " + app.GuessMark + ": because " + comment(because)
}

// filled returns a value that the owner must replace, with a comment that describes the right value.
func filled(value, what string) string {
	return strings.ReplaceAll(value, "?", app.Placeholder) + "   # " + app.Placeholder + ": " + what
}

// Address returns the host:port at which the program expects the server.
func (s *Server) Address() string { return s.kind.host + ":" + s.kind.port }

// Key returns the server's key in oversell.yaml.
func (s *Server) Key() string { return s.kind.key }

// Base returns the URL of the program.
func (d rendering) Base() string { return "http://127.0.0.1:" + d.port() }

// plain matches names that need no quotes in SQL.
var plain = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// reserved matches reserved words of SQL that are common as names of tables.
var reserved = regexp.MustCompile(`^(?:order|user|group|table|key|index|check|column)$`)

// Quote returns a name with the quotes of the program's database, if it needs quotes.
func (d rendering) Quote(name string) string {
	switch {
	case plain.MatchString(name) && !reserved.MatchString(name):
		return name
	case d.Database != nil && d.Database.kind == postgres:
		return `"` + name + `"`
	}
	return "`" + name + "`"
}

// Update returns the statement that restores the stock.
func (d rendering) Update() string {
	return fmt.Sprintf("UPDATE %s SET %s = 1", d.Quote(d.Stock.Table), d.Quote(d.Stock.Name))
}

// Remove returns the statement that deletes the stock, for a program that deletes its row.
func (d rendering) Remove() string { return "DELETE FROM " + d.Quote(d.Stock.Table) }

// Insert returns the statement that creates the stock, with placeholders for further columns.
func (d rendering) Insert() string {
	return fmt.Sprintf("INSERT INTO %s (%s, ?) VALUES (1, ?)", d.Quote(d.Stock.Table), d.Quote(d.Stock.Name))
}

// Delete returns the statement that deletes the orders.
func (d rendering) Delete() string { return "DELETE FROM " + d.Quote(d.Orders.Text) }

// Negative returns the rule that the stock must not be negative.
func (d rendering) Negative() string {
	return fmt.Sprintf("SELECT * FROM %s WHERE %s < 0", d.Quote(d.Stock.Table), d.Quote(d.Stock.Name))
}

// WatchQuery returns the query for `watch`.
func (d rendering) WatchQuery() string {
	stock := d.Quote(d.Stock.Name)
	if stock != "stock" {
		stock += " AS stock"
	}
	return fmt.Sprintf("SELECT %s, (SELECT count(*) FROM %s) AS orders FROM %s", stock, d.Quote(d.Orders.Text), d.Quote(d.Stock.Table))
}

// Line returns the request of a buyer, without its body.
func (one *Route) Line(base string) string {
	query := url.Values{}
	for _, name := range one.Query {
		query.Set(name, fmt.Sprint(sample(name)))
	}
	target := base + one.Path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return one.Method + " " + target
}

// Body returns the body of the request as JSON; "" if the repository names no field of it.
func (one *Route) Body() (string, error) {
	if len(one.Fields) == 0 {
		return "", nil
	}
	values := map[string]any{}
	for _, name := range one.Fields {
		values[name] = sample(name)
	}
	b, err := json.Marshal(values)
	return string(b), err
}

// IsSQL reports whether the draft knows both tables that the rules need.
func (d rendering) IsSQL() bool { return d.Stock != nil && d.Orders.Text != "" }
