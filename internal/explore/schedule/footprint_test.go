package schedule_test

import (
	"testing"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// TestMeets: two uses of rows commute exactly if neither can affect the other in PostgreSQL at READ COMMITTED.
func TestMeets(t *testing.T) {
	rows := func(use schedule.Use, keys bool, fixed ...string) schedule.Touch {
		touch := schedule.Touch{Use: use, Table: "t", Keys: keys, Fixed: map[string][]string{}}
		for i := 0; i+1 < len(fixed); i += 2 {
			touch.Fixed[fixed[i]] = append(touch.Fixed[fixed[i]], fixed[i+1])
		}
		return touch
	}
	const sees, locks, checks, claims, shows, draws = schedule.Sees, schedule.Locks, schedule.Checks, schedule.Claims, schedule.Shows, schedule.Draws
	for _, c := range []struct {
		name string
		a, b schedule.Touch
		want bool
	}{
		{"two reads", rows(sees, false), rows(sees, false), false},
		{"a read and an open change", rows(sees, false), rows(locks, true), false},
		{"a read and a commit", rows(sees, false), rows(shows, false), true},
		{"a read and a commit of another row", rows(sees, false, "id", "1"), rows(shows, false, "id", "2"), false},
		{"a read of one of two rows", rows(sees, false, "id", "1", "id", "2"), rows(shows, false, "id", "2"), true},
		{"rows that are fixed in different columns", rows(sees, false, "a", "1"), rows(shows, false, "b", "2"), true},
		{"two names", rows(sees, false, "id", "<t:1>"), rows(shows, false, "id", "<t:2>"), false},
		{"a name and a constant", rows(sees, false, "id", "<t:1>"), rows(shows, false, "id", "1"), true},
		{"a new row", rows(sees, false, "id", "1"), rows(shows, true, "id", schedule.Fresh), true},
		{"a row with NULL", rows(sees, false, "id", "1"), rows(shows, true, "id", schedule.Null), false},
		{"two locks", rows(locks, false), rows(locks, false), true},
		{"locks of two rows", rows(locks, false, "id", "1"), rows(locks, false, "id", "2"), false},
		{"a lock and a commit", rows(locks, false), rows(shows, false), true},
		{"a foreign key and a change", rows(checks, false), rows(locks, false), false},
		{"a foreign key and a deletion", rows(checks, false), rows(locks, true), true},
		{"a foreign key and a commit", rows(checks, false), rows(shows, false), false},
		{"a foreign key and the commit of a row", rows(checks, false), rows(shows, true), true},
		{"two foreign keys", rows(checks, false), rows(checks, false), false},
		{"two claims", rows(claims, false), rows(claims, false), true},
		{"claims of two keys", rows(claims, false, "a", "1"), rows(claims, false, "a", "2"), false},
		{"claims of new keys", rows(claims, false, "a", schedule.Fresh), rows(claims, false, "a", schedule.Fresh), false},
		{"a claim and a read", rows(claims, false), rows(sees, false), false},
		{"two commits", rows(shows, false), rows(shows, false), true},
		{"two draws", rows(draws, false, "id", "1"), rows(draws, false, "id", "2"), true},
		{"a draw and a commit", rows(draws, false), rows(shows, false), false},
	} {
		if got := c.a.Meets(c.b); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
		if got := c.b.Meets(c.a); got != c.want {
			t.Errorf("%s, in the other order: %t", c.name, got)
		}
	}
}

// TestCommutesWithHeldLocks: if two commands' waits close a cycle, the later command becomes the deadlock's victim. So
// their order matters, although they wait for different rows.
func TestCommutesWithHeldLocks(t *testing.T) {
	lock := func(id string) schedule.Footprint {
		return schedule.Footprint{{Use: schedule.Locks, Table: "t", Fixed: map[string][]string{"id": {id}}}}
	}
	read := schedule.Footprint{{Use: schedule.Sees, Table: "t"}}
	for _, c := range []struct {
		name string
		a, b schedule.Footprint
		want bool
	}{
		{"a cycle", lock("2").Holding(lock("1"), false), lock("1").Holding(lock("2"), false), false},
		{"no cycle", lock("2").Holding(lock("1"), false), lock("3").Holding(lock("2"), false), true},
		{"a transaction without a lock", lock("2").Holding(lock("1"), false), lock("1").Holding(nil, false), true},
		{"unknown locks", lock("2").Holding(nil, true), lock("1").Holding(lock("2"), false), false},
		{"a read does not wait", read.Holding(lock("1"), false), lock("1").Holding(lock("2"), false), true},
	} {
		if c.a.Commutes(c.b) != c.want || c.b.Commutes(c.a) != c.want {
			t.Errorf("%s: %t and %t, want %t", c.name, c.a.Commutes(c.b), c.b.Commutes(c.a), c.want)
		}
	}
}
