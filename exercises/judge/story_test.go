package judge

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/explore"
)

// TestStory: the story names the holder of each lock and the read that a write relied on.
func TestStory(t *testing.T) {
	step := func(buyer int, server, command, result string) explore.Step {
		return explore.Step{Buyer: buyer, Server: server, Command: command, Result: result}
	}
	w := &explore.Witness{
		Verdict: "oversold", Why: "2 units sold of 1 stocked", Outcomes: []explore.Outcome{{Buyer: 1, Answer: "sold"}, {Buyer: 2, Answer: "sold_out"}},
		Steps: []explore.Step{
			step(1, "redis", "SET lock:apple <1> px 3600000 nx", "1"),
			step(1, "sql", "SELECT * FROM product WHERE name = 'apple' LIMIT 1", "amount=1"),
			step(0, "redis", "(all leases expire, and no holder notices)", ""),
			step(2, "redis", "SET lock:apple <2> px 3600000 nx", "1"),
			step(2, "sql", "BEGIN", ""),
			step(2, "sql", "INSERT INTO purchase_history ...", "id=N"),
			step(2, "redis", `script "delete if mine" lock:apple <2>`, "1"),
			step(2, "sql", "COMMIT", ""),
			step(1, "sql", "UPDATE product SET amount = 0 WHERE name = 'apple'", "1 row"),
		},
	}
	const want = `step 1: buyer 1 takes lock:apple.
step 2: buyer 1 reads the stock: amount=1.
step 3: all leases expire, and no holder notices.
step 4: buyer 2 takes lock:apple, which buyer 1 has taken at step 1 and not given back.
step 7: buyer 2 frees lock:apple.
step 8: buyer 2 commits, and has freed its lock before, at step 7 (script "delete if mine" lock:apple <2>).
step 9: buyer 1 sends UPDATE product SET amount = 0 WHERE name = 'apple' -> 1 row, by what it read at step 2 (amount=1), though buyer 2 has changed that at step 8.
In the end 2 units sold of 1 stocked; buyer 1: sold, buyer 2: sold out.`
	expect.Equal(t, Story(w), want)
}

// TestStoryOfStores: the story says which store had which key, and which store lost it.
func TestStoryOfStores(t *testing.T) {
	step := func(buyer int, server, command, result, note string) explore.Step {
		return explore.Step{Buyer: buyer, Server: server, Command: command, Result: result, Note: note}
	}
	w := &explore.Witness{
		Verdict: "stalled", Why: "1 buyer waits", Outcomes: []explore.Outcome{{Buyer: 1, Answer: "sold"}, {Buyer: 2, Answer: "busy"}},
		Steps: []explore.Step{
			step(1, "redis", "SETNX lock:redis <1>", "1", ""),
			step(1, "redlock-1", "SETNX lock:redis <1>", "1", ""),
			step(0, "redis", "(redis forgets its keys)", "", ""),
			step(2, "redis", "SETNX lock:redis <2>", "1", ""),
			step(2, "redlock-1", "SETNX lock:redis <2>", "0", ""),
			step(1, "redlock-1", "DEL lock:redis", "1", ""),
			step(1, "redis", "DEL lock:redis", "1", "it has deleted the lock of buyer 2"),
			step(2, "redis", "SETNX lock:redis <2>", "1", ""),
			step(2, "redlock-1", "SETNX lock:redis <2>", "1", ""),
			step(0, "redlock-1", "(redlock-1 forgets its keys)", "", ""),
			step(1, "redlock-1", "SET lock:redis <1>", "OK", ""),
			step(2, "redlock-1", "SET lock:redis <2>", "OK", ""),
		},
	}
	const want = `step 1: buyer 1 takes lock:redis in store-1.
step 2: buyer 1 takes lock:redis in store-2.
step 3: store-1 forgets its keys.
step 4: buyer 2 takes lock:redis in store-1, which buyer 1 has taken at step 1 and not given back.
step 6: buyer 1 frees lock:redis in store-2.
step 7: buyer 1 sends DEL lock:redis to store-1; it has deleted the lock of buyer 2.
step 8: buyer 2 takes lock:redis in store-1.
step 9: buyer 2 takes lock:redis in store-2.
step 10: store-2 forgets its keys.
step 12: buyer 2 writes lock:redis in store-2, over what buyer 1 has written at step 11.
lock:redis in store-1 stays with buyer 2, who took it at step 8.
In the end 1 buyer waits; buyer 1: sold, buyer 2: busy.`
	named(w)
	expect.Equal(t, Story(w), want)
}

// TestPlace: Place finds the topmost line in the learner's own package. It ignores a package with a
// longer name that begins in the same way.
func TestPlace(t *testing.T) {
	stack := strings.Join([]string{
		"goroutine 7 [running]:", "runtime.gopanic()", "\t/go/panic.go:1 +0x1", "learner.example/token-two.(*x).y()", "\t/x/other.go:2 +0x1",
		"learner.example/token.(*shop).Buy(0x1)", "\t/home/me/first/shop.go:17 +0x2c",
	}, "\n")
	expect.Equal(t, Place(stack, "learner.example/token"), "shop.go:17")
	expect.Equal(t, Place(stack, "learner.example/none"), "")
}

// TestTouched: touched ignores only the rows of the given products.
func TestTouched(t *testing.T) {
	before := book{"the stock of apple": "3", "the stock of nobody's": "5", "record 1": "2 of nobody's for somebody"}
	for name, c := range map[string]struct {
		after book
		want  string
	}{
		"a sale":           {book{"the stock of apple": "2", "the stock of nobody's": "5", "record 1": "2 of nobody's for somebody", "record 2": "1 of apple for buyer-1"}, ""},
		"another's stock":  {book{"the stock of apple": "2", "the stock of nobody's": "4", "record 1": "2 of nobody's for somebody"}, "the stock of nobody's was 5 and is 4"},
		"another's record": {book{"the stock of apple": "2", "the stock of nobody's": "5"}, "record 1 (2 of nobody's for somebody) is gone"},
	} {
		own := book{}
		for k, v := range before {
			own[k] = v
		}
		expect.Equal(t, touched(own, c.after, first, second), c.want, name)
	}
}
