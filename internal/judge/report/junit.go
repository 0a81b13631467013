package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"
)

// junitFormat writes a test for each case. A promised violation is a passed test with its details as output.
// A case that proves nothing is an error, and so is an incomplete result.
func junitFormat() Format {
	return Format{Ending: ".xml", What: "JUnit XML", Write: writeJUnit}
}

// testsuites replaces junit.Testsuites, which omits counts that are 0. Some readers require them.
type testsuites struct {
	XMLName  xml.Name          `xml:"testsuites"`
	Name     string            `xml:"name,attr"`
	Tests    int               `xml:"tests,attr"`
	Failures int               `xml:"failures,attr"`
	Errors   int               `xml:"errors,attr"`
	Time     string            `xml:"time,attr"`
	Suites   []junit.Testsuite `xml:"testsuite"`
}

func writeJUnit(w io.Writer, d Document) error {
	var order []string
	suites := map[string]*junit.Testsuite{}
	took := map[string]time.Duration{}
	_, class, _ := strings.Cut(d.Command, " ")
	for _, c := range d.Cases {
		if suites[c.Suite] == nil {
			order = append(order, c.Suite)
			suites[c.Suite] = &junit.Testsuite{Name: legal(c.Suite), ID: len(order) - 1}
		}
		took[c.Suite] += c.Took
		suites[c.Suite].Time = seconds(took[c.Suite])
		suites[c.Suite].AddTestcase(testcase(class, c))
	}
	if d.Alarm != "" {
		order = append(order, "")
		run := junit.Testsuite{Name: "run", ID: len(order) - 1, Time: seconds(0)}
		run.AddTestcase(junit.Testcase{
			Name: "unfinished", Classname: class + ".run", Time: seconds(0),
			Error: &junit.Result{Message: "cases are missing", Data: legal(d.Alarm)}, SystemOut: &junit.Output{},
		})
		suites[""] = &run
	}
	all := testsuites{Name: d.Command, Time: seconds(d.Took)}
	for _, name := range order {
		s := *suites[name]
		all.Suites = append(all.Suites, s)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	out := xml.NewEncoder(w)
	out.Indent("", "  ")
	if err := out.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func testcase(class string, c Case) junit.Testcase {
	lines := []string{c.Seen}
	if c.Command != "" {
		lines = append(lines, c.Command)
	}
	evidence := strings.Join(lines, "\n")
	text := evidence
	switch {
	case c.Promise != "":
		text = fmt.Sprintf("%s: promised %s\n%s", c.Word, c.Promise, evidence)
	case c.Word != "":
		text = c.Word + "\n" + evidence
	}
	for _, d := range c.Details {
		if d.Text != "" || d.Mermaid != "" {
			text += "\n\n" + d.Text + "\n" + d.Mermaid
		}
	}
	one := junit.Testcase{
		Name: legal(c.Name), Classname: legal(class + "." + c.Suite), Time: seconds(c.Took), SystemOut: &junit.Output{Data: legal(text)},
	}
	message := c.Word
	if c.Promise != "" {
		message = fmt.Sprintf("promised %s, seen %s", c.Promise, c.Word)
	}
	problem := &junit.Result{Message: legal(message), Data: legal(evidence)}
	switch c.Status {
	case Void, Failed:
		one.Error = problem
	case Contradicts:
		one.Failure = problem
	}
	return one
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// legal replaces characters that XML does not allow (www.w3.org/TR/xml, section 2.2). A name or an error
// message may contain any byte, and XML cannot escape these characters.
func legal(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r', r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000 && r <= 0x10FFFF:
			return r
		}
		return '\uFFFD'
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
