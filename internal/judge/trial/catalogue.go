package trial

import (
	"fmt"
	"io"
	"strings"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/lockstrategy"
)

const safetyLegend = `safe?: whether the stock stays right on MariaDB with a single Redis server. "not safe" names the first
condition that breaks the strategy: a rush, a second process of the shop, or a fault.`

// PrintCatalogue writes the strategies as a table for a terminal.
func PrintCatalogue(w io.Writer, _ bool) error {
	t := report.Table{Columns: []report.Column{
		{Name: "family", Width: 12}, {Name: "name"}, {Name: "safe?", Width: 13}, {Name: "does", Width: 36}, {Name: "breaks when", Width: 30}, {Name: "needs"},
	}}
	above := ""
	for _, e := range lockstrategy.All() {
		family := e.Family
		if family == above {
			family = ""
		}
		above = e.Family
		t.Rows = append(t.Rows, report.Texts(family, e.Name, e.Safety(dialect.MySQL), e.Summary, e.BreaksWhen, Needs(e)))
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", t.Terminal(report.Look{Boxed: true}), safetyLegend)
	return err
}

// Needs lists the servers and the abilities of the database that a strategy needs.
func Needs(e lockstrategy.Entry) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(e.Needs), "[]"), " ", ", ")
}

// Catalogue returns the strategies as a document for every report format.
func Catalogue() report.Document {
	all := lockstrategy.All()
	t := report.Table{Columns: report.Columns("name", "family", "safe?", "does", "breaks when", "needs")}
	d := report.Document{
		Command: "shop strategies", Title: "The lock strategies", Lead: fmt.Sprintf("%d strategies", len(all)), Value: all,
		Groups: []report.Group{{Heading: "What each guarantees", Brief: true, Columns: [3]string{"family", "name", "guarantees"}}},
	}
	for _, e := range all {
		t.Rows = append(t.Rows, report.Row(e.Name, e.Family, e.Safety(dialect.MySQL), e.Summary, e.BreaksWhen, Needs(e)))
		d.Cases = append(d.Cases, report.Case{Suite: e.Family, Name: e.Name, Title: e.Name, Seen: e.Guarantees})
	}
	d.Tables = []report.Table{t}
	return d
}
