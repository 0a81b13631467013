package naming

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestReplaceKnown: the loops over bytes find what the patterns find.
func TestReplaceKnown(t *testing.T) {
	value := regexp.MustCompile(named + `|[A-Za-z0-9_-]+`)
	known := map[string]string{"1234": "<a.1>", "12-34": "<a.2>", "a-1234": "<a.3>", "12345": "<b.1>", "ab_c": "<b.2>", "time": "<c.1>", "0000": "<c.2>"}
	ifKnown := func(v string) string {
		if name, ok := known[v]; ok {
			return name
		}
		return v
	}
	pieces := []string{
		"1234", "<b:ab_c>", "<b:", "12-34", "a-", "ab_c", "time", "<", ">", "<>", "<time>", "<a.1>", "<b.0000>", "<a.", ":", ".", "-", " ", "'", "é", "x", "5", "0000",
		"deadbeef", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "0.123456", "2026-11-26 05:48:53", "2026-11-26T05:48:53.12Z", "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
	}
	chance := rand.New(rand.NewPCG(1, 2))
	replaced := 0
	for range 20_000 {
		var b strings.Builder
		for range 1 + chance.IntN(8) {
			b.WriteString(pieces[chance.IntN(len(pieces))])
		}
		text := b.String()
		want := number.ReplaceAllStringFunc(value.ReplaceAllStringFunc(text, ifKnown), ifKnown)
		if got := replaceKnown(text, known); got != want {
			t.Fatalf("%q: %q; the patterns make %q", text, got, want)
		}
		if want != text {
			replaced++
		}
		if !mayBeRandom(text) && Random.MatchString(text) || !mayBeMoment(text) && Moment.MatchString(text) {
			t.Fatalf("%q is passed over", text)
		}
	}
	if replaced < 1000 {
		t.Fatalf("only %d texts have a known value", replaced)
	}
}
