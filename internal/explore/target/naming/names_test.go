package naming

import (
	"fmt"
	"regexp"
	"testing"
	"time"
)

// TestNames: a value is named after its statement, whatever values other statements have.
func TestNames(t *testing.T) {
	const (
		first  = "INSERT INTO orders VALUES ('6f9619ff-8b86-d011-b42d-00cf4fc964ff', '0e984725-c51c-4bf4-9960-e1c80e27aba0')"
		second = "INSERT INTO orders VALUES ('11111111-8b86-d011-b42d-00cf4fc964ff', '22222222-c51c-4bf4-9960-e1c80e27aba0')"
		cart   = "SET cart 33333333-8b86-d011-b42d-00cf4fc964ff"
		other  = "SELECT * FROM orders WHERE token = '0123456789abcdef'"
	)
	n := New(&Varying{}, false)
	for i, c := range []struct{ text, want string }{
		{first, "INSERT INTO orders VALUES ('<orders.1>', '<orders.1b>')"},
		{cart, "SET cart <set.1>"},
		{second, "INSERT INTO orders VALUES ('<orders.2>', '<orders.2b>')"},
		{first, "INSERT INTO orders VALUES ('<orders.1>', '<orders.1b>')"},
		{other, "SELECT * FROM orders WHERE token = '<orders-2.1>'"},
		{"SELECT '0123456789abcdef'", "SELECT '<orders-2.1>'"},
		{"SELECT 'order_01CQ9VZ1M3K4N5P6Q7R8S9T0V1'", "SELECT 'order_<select.1>'"},
	} {
		if got := n.Of(c.text); got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
	n.Made(first, "1000001")
	n.Made(first, "7")
	n.Made(second, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
	for text, want := range map[string]string{
		"UPDATE a SET b = 1000001, c = 7 WHERE d = '01ARZ3NDEKTSV4RRFFQ69G5FAV'": "UPDATE a SET b = <orders:1>, c = 7 WHERE d = '<orders:2>'",
		"GET order-1000001": "GET order-<orders:1>",
	} {
		if got := n.Shown(text); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := n.Answer(first, "id=1000001 token=44444444-8b86-d011-b42d-00cf4fc964ff"); got != "id=<orders:1> token=<orders:3>" {
		t.Error(got)
	}
}

// TestNamesOfTimes: every time has the same name. A number that is not near the current time is no time.
func TestNamesOfTimes(t *testing.T) {
	now := time.Now()
	for _, text := range []string{
		"2026-11-26 03:01:02", "2026-11-26T03:01:02.123Z", fmt.Sprint(now.Unix()), fmt.Sprint(now.UnixMilli()), fmt.Sprint(now.UnixMicro()), fmt.Sprint(now.UnixNano()), fmt.Sprint(now.Add(time.Hour).UnixMilli()),
	} {
		if got := New(&Varying{}, false).Shown("SELECT " + text); got != "SELECT <time>" {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := New(&Varying{}, false).Shown("SELECT 9007199254740993"); got != "SELECT <select.1>" {
		t.Error(got)
	}
}

// TestNamesAsked: the patterns of oversell.yaml name values, too.
func TestNamesAsked(t *testing.T) {
	n := New(&Varying{Asked: []*regexp.Regexp{regexp.MustCompile(`ORD-\w+`)}}, false)
	if got := n.Of("SELECT 'ORD-X7', 'ORD-X7', 'ORD-B'"); got != "SELECT '<select.1>', '<select.1>', '<select.1b>'" {
		t.Error(got)
	}
}
