package verify

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"github.com/oversell/oversell/internal/verdict"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitProblem `xml:"failure,omitempty"`
	Error   *junitProblem `xml:"error,omitempty"`
	Out     string        `xml:"system-out"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes a suite a strategy and a case a cell. A break that is promised is
// a case that passes, with its witness as output; a cell that has shown nothing
// is an error.
func (r Report) JUnit(w io.Writer) error {
	all := junitSuites{Name: "shop verify", Time: seconds(r.DurationMS)}
	strategies, faults := order(r.Cells)
	for _, s := range strategies {
		suite := junitSuite{Name: s}
		for _, f := range faults {
			c := r.cell(s, f)
			if c == nil {
				continue
			}
			one := junitCase{
				Name: string(f), Class: "verify." + s, Time: seconds(c.DurationMS),
				Out: fmt.Sprintf("%s: promised %s\n%s\n%s", c.Verdict, orNothing(c.Promise), c.Evidence, c.Replay),
			}
			if c.Witness != nil {
				one.Out += "\n\n" + c.Witness.Text + "\n" + c.Witness.Mermaid
			}
			problem := &junitProblem{fmt.Sprintf("promised %s, seen %s", orNothing(c.Promise), c.Verdict), c.Evidence + "\n" + c.Replay}
			switch {
			case c.Verdict == verdict.Inconclusive:
				one.Error = problem
				suite.Errors++
			case !c.OK:
				one.Failure = problem
				suite.Failures++
			}
			suite.Tests++
			suite.Cases = append(suite.Cases, one)
		}
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Errors += suite.Errors
		all.Suites = append(all.Suites, suite)
	}
	if r.Unfinished != "" {
		one := junitCase{Name: "unfinished", Class: "verify.run", Time: seconds(0), Error: &junitProblem{"cells are missing", r.Unfinished}}
		all.Suites = append(all.Suites, junitSuite{Name: "run", Tests: 1, Errors: 1, Cases: []junitCase{one}})
		all.Tests++
		all.Errors++
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

func seconds(ms int64) string {
	return fmt.Sprintf("%.3f", (time.Duration(ms) * time.Millisecond).Seconds())
}
