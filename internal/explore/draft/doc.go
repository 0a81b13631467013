// Package draft drafts the file that describes a program under test, oversell.yaml, from the files of
// the program's repository. It reads files only; it runs nothing and connects to nothing.
//
//	os.Root -> Read -> Draft -> Draft.YAML -> app.Load
//
// Each language is one file, and one line in ecosystems. Each other source of facts is one file, and
// one line in sources. The tables of regular expressions are in ports.go, routes.go and tables.go.
package draft
