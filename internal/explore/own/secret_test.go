package own

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestMayHide: no text is skipped in which the expressions find a secret.
func TestMayHide(t *testing.T) {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	for _, value := range []string{
		rand.Text(), uuid.NewString(), uuid.NewString() + ":17", base64.StdEncoding.EncodeToString(id),
		"ann-" + strings.ToLower(rand.Text()), "1753980000123-0", "1753980000123", "1753980000123456", "3599999", "3600000", "1000000",
	} {
		for _, text := range []string{value, "SET k " + value + " NX", "(" + value + ")", "'x','" + value + "'"} {
			if found := secret.MatchString(text) || number.MatchString(text); !found || !mayHide(text) {
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

// TestExactNamesHolders: the name of a lock's holder is one random value, however many digits its number
// has. A part that looks like a time gave the same state a second name, so its schedules ran again.
func TestExactNamesHolders(t *testing.T) {
	for _, number := range []string{"7", "3599999", "17539800001", "1753980000123", "1753980000123456", "7753980000123456789"} {
		k := knowledge{r: &run{x: &Runner{}}, names: secrets{}}
		if got := k.exact(2, "HSET lock "+uuid.NewString()+":"+number+" 1"); got != "HSET lock token2 1" {
			t.Errorf("%s: %s", number, got)
		}
	}
}
