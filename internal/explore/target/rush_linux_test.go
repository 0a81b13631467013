package target

import (
	"errors"
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/instance"
)

// TestTold checks how each kind of answer is counted.
func TestTold(t *testing.T) {
	cut := errors.New("EOF")
	for _, c := range []struct {
		name string
		told instance.Told
		sold []int
		want Crowd
	}{
		{"sold", instance.Told{Reply: client.Reply{Status: 200}, Sent: true}, []int{200}, Crowd{Sold: 1}},
		{"sold out", instance.Told{Reply: client.Reply{Status: 409}, Sent: true}, []int{200}, Crowd{}},
		{"failed", instance.Told{Reply: client.Reply{Status: 500}, Sent: true}, []int{200}, Crowd{Failed: 1}},
		{"5xx that the file calls a sale", instance.Told{Reply: client.Reply{Status: 503}, Sent: true}, []int{503}, Crowd{Sold: 1}},
		{"not reached", instance.Told{Err: cut}, []int{200}, Crowd{Failed: 1}},
		{"cut before the answer", instance.Told{Err: cut, Sent: true}, []int{200}, Crowd{Unanswered: 1}},
		{"cut within the answer", instance.Told{Reply: client.Reply{Status: 200}, Err: cut, Sent: true}, []int{200}, Crowd{Unanswered: 1}},
	} {
		var got Crowd
		if got.tell(c.told, &app.App{Sold: app.Answers{Statuses: c.sold}}); got.Sold != c.want.Sold || got.Failed != c.want.Failed || got.Unanswered != c.want.Unanswered {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
