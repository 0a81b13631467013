package sizing

import (
	"reflect"
	"strings"
	"testing"
)

// TestCSV: the reference is written as it was read, and JSON has the same points. An invalid file is
// rejected with the line of the error.
func TestCSV(t *testing.T) {
	t.Parallel()
	m, err := Reference()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := m.File("a.csv"); err != nil || string(text) != string(reference) {
		t.Errorf("written otherwise than it was read, %v", err)
	}
	text, err := m.File("a.json")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := read("a.json", text); err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("as JSON it is read otherwise, %v", err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"cores,2", "cores,two", "cores: invalid character"},
		{"cores,2", "cores,NaN", "cores: invalid character"},
		{"when,", "day,", "line 1 is not when and its value"},
		{"strategy,database", "database,strategy", `column 1 is "database" and not strategy`},
		{",32,0,0,1425,", ",32,0,1425,", "point 1 has 19 columns of 20"},
		{"1225 1425 1550", "1225 x", "point 1: rounds: invalid character"},
		{"none,mariadb,1,", "none,mariadb,one,", "point 1: nodes: invalid character"},
	} {
		broken := strings.Replace(string(reference), c.old, c.new, 1)
		if _, err := read("a.csv", []byte(broken)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v; want %s", c.new, c.old, err, c.want)
		}
	}
}
