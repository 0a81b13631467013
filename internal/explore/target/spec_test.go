package target

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/target/gates"
)

// TestCheckErr: the reason why a program cannot be explored is one line. A refused buyer is no reason if another
// buyer is sold a unit.
func TestCheckErr(t *testing.T) {
	one := []gates.Seen{{Server: "mysql", Text: "SELECT 1"}}
	bought := Alone{Buyer: 1, Answer: "200 bought", Sold: true, Commands: one}
	refused := func(buyer int, answer string) Alone { return Alone{Buyer: buyer, Answer: answer, Commands: one} }
	for _, c := range []struct {
		name   string
		buyers []Alone
		want   string // part of the error; "": none
	}{
		{"both buy", []Alone{bought, {Buyer: 2, Answer: "200 bought", Sold: true, Commands: one}}, ""},
		{"the second is refused, whatever comes before", []Alone{bought, refused(2, "403 members only")}, ""},
		{"the first is refused", []Alone{refused(1, "403 members only"), {Buyer: 2, Answer: "200 bought", Sold: true, Commands: one}}, ""},
		{"nobody, all alike", []Alone{refused(1, "409 sold out"), refused(2, "409 sold out"), refused(3, "409 sold out")}, "no buyer alone is told of a sale, so nothing can be sold twice: buyers 1, 2 and 3: 409 sold out; if one of these"},
		{"nobody, each another way", []Alone{refused(1, "303"), refused(2, "404 no such item"), refused(3, "303")}, ": buyers 1 and 3: 303, buyer 2: 404 no such item; if one of these answers is a sale, name it in `sold:` of the file; else give the item stock in `reset:`"},
		{"no command at all", []Alone{bought, {Buyer: 2, Answer: "409 sold out"}}, "buyer 2 alone: no command came to a gate"},
		{"what went wrong comes first", []Alone{refused(1, "409 sold out"), {Buyer: 2, Why: "it is answered 500"}}, "buyer 2 alone: it is answered 500"},
	} {
		err := Check{Buyers: c.buyers}.Err()
		if (err != nil) != (c.want != "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
