package verify

import (
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/fault"
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
	expect.DeepEqual(t, r.notPromised(), want)
}

// TestLeaveOutRows: a strategy without a cell is named once, unless another line says why it has none.
func TestLeaveOutRows(t *testing.T) {
	rows := []Strategy{}
	for _, name := range []string{"none", "redis", "queue", "etcd"} {
		rows = append(rows, Strategy{Subject: fault.Subject{Name: name}})
	}
	r := Report{Cells: []Cell{{Strategy: "redis"}}, LeftOut: []string{"the explorer, etcd: it has no gate"}}
	r.leaveOutRows(rows, r.hasRow)
	if want := "none, queue: not affected by what this run injects"; len(r.LeftOut) != 2 || r.LeftOut[1] != want {
		t.Errorf("left out %q, want %q", r.LeftOut, want)
	}
	r = Report{}
	if r.leaveOutRows(rows, r.hasRow); r.LeftOut != nil {
		t.Errorf("left out %q although no strategy has a cell", r.LeftOut)
	}
}
