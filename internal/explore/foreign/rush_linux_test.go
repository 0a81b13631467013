package foreign

import (
	"errors"
	"testing"
)

// TestTold: what is counted for which answer.
func TestTold(t *testing.T) {
	cut := errors.New("EOF")
	for _, c := range []struct {
		name string
		told told
		sold []int
		want Crowd
	}{
		{"sold", told{reply: reply{status: 200}, sent: true}, []int{200}, Crowd{Sold: 1}},
		{"sold out", told{reply: reply{status: 409}, sent: true}, []int{200}, Crowd{}},
		{"failed", told{reply: reply{status: 500}, sent: true}, []int{200}, Crowd{Failed: 1}},
		{"5xx that the file calls a sale", told{reply: reply{status: 503}, sent: true}, []int{503}, Crowd{Sold: 1}},
		{"not reached", told{err: cut}, []int{200}, Crowd{Failed: 1}},
		{"cut before the answer", told{err: cut, sent: true}, []int{200}, Crowd{Unanswered: 1}},
		{"cut within the answer", told{reply: reply{status: 200}, err: cut, sent: true}, []int{200}, Crowd{Unanswered: 1}},
	} {
		var got Crowd
		if got.tell(c.told, c.sold); got.Sold != c.want.Sold || got.Failed != c.want.Failed || got.Unanswered != c.want.Unanswered {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
