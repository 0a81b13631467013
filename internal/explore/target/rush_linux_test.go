package target

import (
	"errors"
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/wire"
)

// TestOverlap: commands are counted while they are at their servers. A command whose connection
// ends is no longer counted.
func TestOverlap(t *testing.T) {
	f, err := newFloor(app.Ignore{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	one, two, three := &wire.Command{Gated: true}, &wire.Command{Gated: true}, &wire.Command{Gated: true}
	f.First(one)
	f.First(&wire.Command{}) // passes every gate
	f.First(two)
	if most, left := f.rush.gathered(); most != 2 || len(left) != 0 {
		t.Errorf("%d at once, %d left; want 2, 0", most, len(left))
	}
	f.mu.Lock()
	f.rush.cut(one.Conn())
	f.mu.Unlock()
	if _, left := f.rush.gathered(); len(left) != 2 {
		t.Errorf("%d connections have left a command at its server, want that of both", len(left))
	}
	f.rush.gather()
	f.First(three)
	if most, left := f.rush.gathered(); most != 1 || len(left) != 0 {
		t.Errorf("%d at once, %d left in the next round; want 1, 0", most, len(left))
	}
}

// TestTold: how each answer is counted.
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
		if got.tell(c.told, app.Sale{Statuses: c.sold}); got.Sold != c.want.Sold || got.Failed != c.want.Failed || got.Unanswered != c.want.Unanswered {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
