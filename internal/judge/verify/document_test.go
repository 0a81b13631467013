package verify

import (
	"slices"
	"testing"
)

// TestNotPromised: each reason appears once, with all its conditions.
func TestNotPromised(t *testing.T) {
	t.Parallel()
	r := Report{Cells: []Cell{
		{Strategy: "setnx", Fault: "pause", NoPromise: "chance decides"},
		{Strategy: "setnx", Fault: "rush"},
		{Strategy: "etcd", Fault: "pause", NoPromise: "the client counts"},
		{Strategy: "setnx", Fault: "crash", NoPromise: "chance decides"},
		{Strategy: "redis", Fault: "pause", NoPromise: "chance decides"},
	}}
	want := []string{
		"No promise is made for setnx under pause, crash; redis under pause: chance decides.",
		"No promise is made for etcd under pause: the client counts.",
	}
	if got := r.notPromised(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
