package own

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/oversell/oversell/internal/explore/gate"
)

// TestMayHide: mayHide returns true for each text in which the expressions find a secret.
func TestMayHide(t *testing.T) {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	for _, value := range []string{
		rand.Text(), uuid.NewString(), uuid.NewString() + ":17", base64.StdEncoding.EncodeToString(id),
		"ann-" + strings.ToLower(rand.Text()), "1753980000123-0", "1753980000123", "1753980000123456", "3599999", "3600000",
	} {
		for _, text := range []string{value, "SET k " + value + " NX", "(" + value + ")", "'x','" + value + "'"} {
			if found := secret.MatchString(text) || aTime.MatchString(text); !found || !mayHide(text) {
				t.Errorf("%q: found %t, may hide %t", text, found, mayHide(text))
			}
		}
	}
	for _, text := range []string{"", "SELECT * FROM `products` WHERE name = 'apple'", "OK", "12", "2 messages", "1-0"} {
		if mayHide(text) {
			t.Errorf("%q may hide something", text)
		}
	}
}

// TestExactNamesHolders: exact replaces the whole name of a lock's holder, with any number of digits.
// If it took the digits for a time, one state would count as two, and the search would run its
// schedules twice.
func TestExactNamesHolders(t *testing.T) {
	for _, number := range []string{"7", "3599999", "17539800001", "1753980000123", "1753980000123456", "7753980000123456789"} {
		k := knowledge{r: &run{x: &Runner{}}, names: secrets{}}
		if got := k.exactOf(&gate.Op{Server: "redis"}, 2, "HSET lock "+uuid.NewString()+":"+number+" 1"); got != "HSET lock token2 1" {
			t.Errorf("%s: %s", number, got)
		}
	}
}

// TestExactNumbers: exactOf keeps different numbers different. It rounds only the remaining time of a
// lease in the answer of a lock server.
func TestExactNumbers(t *testing.T) {
	k := knowledge{r: &run{x: &Runner{}}, names: secrets{}}
	exact := func(server, text string) string { return k.exactOf(&gate.Op{Server: server}, 1, text) }
	for _, c := range []struct {
		server, a, b string
		same         bool
	}{
		{gate.SQL, "amount 1000001", "amount 1000002", false},
		{gate.SQL, "amount 3599998", "amount 3599999", false},
		{gate.SQL, "amount 12345678901234", "amount 12345678901235", false},
		{"redis", "(integer) 1000001", "(integer) 1000002", false},
		{"redis", "(integer) 3599998", "(integer) 3599999", true},
		{"redis", "(integer) 2399998", "(integer) 2399999", true},
		{"redis", "(integer) 2399998", "(integer) 3599999", false},
	} {
		if got := exact(c.server, c.a) == exact(c.server, c.b); got != c.same {
			t.Errorf("%s: %q and %q are the same: %t", c.server, c.a, c.b, got)
		}
	}
	if k.exact(0, "amount 3599998") == k.exact(0, "amount 3599999") {
		t.Error("two stocks are one")
	}
}
