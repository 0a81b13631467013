package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/history"
)

// at returns a moment of the tests' clock.
func at(ms int) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(ms) * time.Millisecond)
}

func sale(ms int, amount, left int64) history.Event {
	return history.Event{Kind: history.Return, At: at(ms), Purchaser: fmt.Sprint("b", ms), Outcome: "sold", Amount: amount, Left: &left}
}

// TestShelf: the shelf shows a unit as sold twice exactly if two sales took it.
func TestShelf(t *testing.T) {
	for _, c := range []struct {
		name    string
		exact   bool
		stocked int64
		sales   []history.Event
		cells   string
		twice   int64
	}{
		{"one after the other", true, 4, []history.Event{sale(1, 1, 3), sale(2, 1, 2)}, "11..", 0},
		{"in any order", true, 4, []history.Event{sale(2, 1, 2), sale(1, 1, 3)}, "11..", 0},
		{"two saw the same", true, 4, []history.Event{sale(1, 1, 3), sale(2, 1, 3)}, "2...", 1},
		{"several units", true, 4, []history.Event{sale(1, 3, 1), sale(2, 2, 1)}, "122.", 2},
		{"what is left tells nothing", false, 4, []history.Event{sale(1, 1, 3), sale(2, 1, 3)}, "11..", 0},
		{"beyond the stock", false, 2, []history.Event{sale(1, 1, 1), sale(2, 1, 0), sale(3, 1, 0)}, "12", 1},
		{"below zero", true, 2, []history.Event{sale(1, 1, 1), sale(2, 1, 0), sale(3, 1, -1)}, "11", 1},
		{"nothing on sale", true, 0, []history.Event{sale(1, 1, 3)}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLane("p", "s", c.stocked, c.exact)
			for _, e := range c.sales {
				l.take(e)
			}
			if got := l.picture(); got.Cells != c.cells || got.Twice != c.twice {
				t.Errorf("cells %q, %d twice; want %q, %d", got.Cells, got.Twice, c.cells, c.twice)
			}
		})
	}
}

// TestLargeShelf: a cell stands for several units. Sales beyond the stock are shown even if units
// are not tracked one by one.
func TestLargeShelf(t *testing.T) {
	l := newLane("p", "s", 1000, true)
	l.take(sale(1, 3, 997))
	if p := l.picture(); p.PerCell != 2 || len(p.Cells) != 500 || !strings.HasPrefix(p.Cells, "1-..") {
		t.Errorf("%d a cell, %d cells, %.5q", p.PerCell, len(p.Cells), p.Cells)
	}
	l = newLane("p", "s", 1_000_000, true)
	for i := range 1001 {
		l.take(sale(i, 1000, 0))
	}
	if p := l.picture(); len(p.Cells) != maxCells || strings.Trim(p.Cells, "1") != "" || p.Twice != 1000 {
		t.Errorf("%d cells, %d twice", len(p.Cells), p.Twice)
	}
}

// TestHolders: events of two processes arrive in any order. Two holders count as simultaneous only
// if their times overlap.
func TestHolders(t *testing.T) {
	event := func(kind history.Kind, ms int, who string) history.Event {
		return history.Event{Kind: kind, At: at(ms), Purchaser: who, Token: who}
	}
	for _, c := range []struct {
		name   string
		events []history.Event
		most   int
	}{
		{"in turn", []history.Event{event("acquired", 0, "a"), event("released", 5, "a"), event("acquired", 6, "b"), event("released", 9, "b")}, 1},
		{"in turn, told late", []history.Event{event("acquired", 0, "a"), event("acquired", 6, "b"), event("released", 5, "a"), event("released", 9, "b")}, 1},
		{"beside", []history.Event{event("acquired", 0, "a"), event("acquired", 4, "b"), event("released", 5, "a"), event("released", 9, "b")}, 2},
		{"beside, told late", []history.Event{event("acquired", 4, "b"), event("released", 9, "b"), event("acquired", 0, "a"), event("lost", 5, "a")}, 2},
		{"two in turn beside one", []history.Event{event("acquired", 0, "a"), event("acquired", 1, "b"), event("released", 2, "b"), event("acquired", 3, "c"), event("released", 4, "c"), event("released", 5, "a")}, 2},
		{"three", []history.Event{event("acquired", 0, "a"), event("acquired", 1, "b"), event("acquired", 2, "c"), event("released", 3, "c"), event("released", 4, "b"), event("released", 5, "a")}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLane("p", "s", 10, true)
			for _, e := range c.events {
				l.take(e)
			}
			if got := l.picture(); got.MostHolders != c.most || got.Holding != 0 {
				t.Errorf("at most %d at once and %d now, want %d and 0", got.MostHolders, got.Holding, c.most)
			}
		})
	}
	l := newLane("p", "s", 10, true)
	l.take(event("acquired", 0, "a"))
	l.take(event("acquired", 6, "b"))
	if got := l.picture(); got.Holding != 1 || got.Holders[0] != "b" {
		t.Errorf("the release may be on its way: %v", got.Holders)
	}
	l.take(event("waiting", 300, "c"))
	if got := l.picture(); got.Holding != 2 || got.Waiting != 1 {
		t.Errorf("a third of a second later it is not: %v", got.Holders)
	}
}

// TestAnswers: outcomes are counted and shown in order of their times.
func TestAnswers(t *testing.T) {
	l := newLane("p", "s", 1, true)
	l.take(history.Event{Kind: history.Call, At: at(0), Purchaser: "b7"})
	l.take(history.Event{Kind: history.Call, At: at(0), Purchaser: "gone"})
	l.take(history.Event{Kind: history.Return, At: at(9), Purchaser: "x", Outcome: "sold_out"})
	l.take(sale(7, 1, 0))
	l.take(history.Event{Kind: history.Replay, At: at(10), Purchaser: "b7", Outcome: "sold", Amount: 1})
	p := l.picture()
	if p.Marks != "sn" || p.Outcomes["sold"] != 1 || p.Outcomes["sold_out"] != 1 || p.P50MS != 7 || p.Inside != 1 {
		t.Errorf("%+v", p)
	}
	l.settle()
	expect.Equal(t, l.picture().Inside, 0, "inside after the crowd")
}
