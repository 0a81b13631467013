package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/require"
)

// shop returns the end of a run: the stock, and a purchase for each buyer in orders. The generated keys of the
// purchases count from first.
func shop(stock int, first int, orders []int, answers map[int]Answer) Run {
	rows := [][]string{}
	for i, b := range orders {
		rows = append(rows, []string{fmt.Sprint(first + i), fmt.Sprint("buyer ", b), "2026-11-28 15:00:0" + fmt.Sprint(i)})
	}
	return Run{answers, Data{
		"items":  {[]Column{{Name: "id", Key: "items.id"}, {Name: "stock"}}, [][]string{{"1", fmt.Sprint(stock)}}},
		"orders": {[]Column{{Name: "id", Key: "orders.id"}, {Name: "buyer"}, {Name: "at"}}, rows},
	}}
}

func bought(id int) Answer { return Answer{Status: 200, Body: fmt.Sprintf(`{"order_id": %d}`, id)} }

var soldOut = Answer{Status: 409, Body: `{"error": "sold out"}`}

// lastUnit returns the oracle for two buyers of one unit.
func lastUnit(t *testing.T) *Oracle {
	t.Helper()
	reset := shop(1, 0, nil, nil).Data
	o := New(reset, nil)
	o.Add(nil, Run{nil, reset})
	o.Add([]int{1}, shop(0, 7, []int{1}, map[int]Answer{1: bought(7)}))
	o.Add([]int{2}, shop(0, 8, []int{2}, map[int]Answer{2: bought(8)}))
	for first := range 2 {
		o.Add([]int{1, 2}, shop(0, 9+first, []int{1}, map[int]Answer{1: bought(9 + first), 2: soldOut}))
		o.Add([]int{2, 1}, shop(0, 9+first, []int{2}, map[int]Answer{2: bought(9 + first), 1: soldOut}))
	}
	require.NoError(t, o.Settle())
	return o
}

// TestJudge: a run must end like an order of the buyers, in the answers and in the data. A refused buyer need not be
// part of the order, but must have changed nothing.
func TestJudge(t *testing.T) {
	busy, lost := Answer{Status: 503}, Answer{Lost: true}
	for name, c := range map[string]struct {
		run  Run
		want string // the tables of the difference; "": there is none
	}{
		"buyer 1 first":                 {shop(0, 70, []int{1}, map[int]Answer{1: bought(70), 2: soldOut}), ""},
		"buyer 2 first":                 {shop(0, 71, []int{2}, map[int]Answer{1: soldOut, 2: bought(71)}), ""},
		"one is refused in another way": {shop(0, 72, []int{1}, map[int]Answer{1: bought(72), 2: busy}), ""},
		"both are refused":              {shop(1, 0, nil, map[int]Answer{1: busy, 2: busy}), ""},
		"no answer after a sale":        {shop(0, 73, []int{1}, map[int]Answer{1: lost, 2: soldOut}), ""},
		"sold twice":                    {shop(0, 74, []int{1, 2}, map[int]Answer{1: bought(74), 2: bought(75)}), "answer orders"},
		"sold twice, one told so":       {shop(0, 76, []int{1, 2}, map[int]Answer{1: bought(76), 2: soldOut}), "orders"},
		"told twice":                    {shop(0, 77, []int{1}, map[int]Answer{1: bought(77), 2: bought(77)}), "answer"},
		"the unit is lost":              {shop(0, 0, nil, map[int]Answer{1: busy, 2: busy}), "items"},
		"a sale that was refused":       {shop(0, 78, []int{1}, map[int]Answer{1: busy, 2: busy}), "items orders"},
		"another's order":               {shop(0, 79, []int{2}, map[int]Answer{1: bought(79), 2: soldOut}), "orders"},
		"the sale is not stored":        {shop(1, 0, nil, map[int]Answer{1: bought(80), 2: busy}), "answer items orders"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _, err := lastUnit(t).Judge(c.run)
			require.NoError(t, err)
			var tables []string
			if d != nil {
				for _, r := range d.Rows {
					tables = append(tables, r.Table)
				}
			}
			if got := strings.Join(slices.Compact(tables), " "); got != c.want {
				t.Errorf("it differs in %q, want %q: %+v", got, c.want, d)
			}
		})
	}
}

// TestRefused: Judge reports a refused buyer that would be served after the others, since a unit is left.
func TestRefused(t *testing.T) {
	busy, lost := Answer{Status: 503}, Answer{Lost: true}
	two := func() *Oracle { // two units
		o := New(shop(2, 0, nil, nil).Data, nil)
		o.Add([]int{1, 2}, shop(0, 3, []int{1, 2}, map[int]Answer{1: bought(3), 2: bought(4)}))
		o.Add([]int{2, 1}, shop(0, 3, []int{2, 1}, map[int]Answer{1: bought(4), 2: bought(3)}))
		o.Add([]int{1}, shop(1, 3, []int{1}, map[int]Answer{1: bought(3)}))
		o.Add([]int{2}, shop(1, 3, []int{2}, map[int]Answer{2: bought(3)}))
		o.Add(nil, shop(2, 0, nil, nil))
		return o
	}
	for name, c := range map[string]struct {
		oracle *Oracle
		run    Run
		want   []int
	}{
		"both of one unit":        {lastUnit(t), shop(1, 0, nil, map[int]Answer{1: busy, 2: busy}), []int{1, 2}},
		"the second of one":       {lastUnit(t), shop(0, 7, []int{1}, map[int]Answer{1: bought(7), 2: busy}), nil},
		"no answer to either":     {lastUnit(t), shop(1, 0, nil, map[int]Answer{1: lost, 2: lost}), nil},
		"the second of two":       {two(), shop(1, 7, []int{1}, map[int]Answer{1: bought(7), 2: busy}), []int{2}},
		"one of two, one is lost": {two(), shop(1, 7, []int{1}, map[int]Answer{1: lost, 2: busy}), []int{2}},
		"both of two are served":  {two(), shop(0, 7, []int{1, 2}, map[int]Answer{1: bought(7), 2: bought(8)}), nil},
	} {
		if d, got, err := c.oracle.Judge(c.run); d != nil || err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d were refused, want %d: %+v, %v", name, got, c.want, d, err)
		}
	}
}

// TestNodes: a generated key stands for the row in which it is, in references and in answers.
func TestNodes(t *testing.T) {
	data := func(first int, owners ...string) Data {
		d := Data{
			"carts": {[]Column{{Name: "id", Key: "carts.id"}, {Name: "buyer"}}, nil},
			"lines": {[]Column{{Name: "cart", Key: "carts.id"}, {Name: "item"}}, nil},
		}
		for i, who := range []string{"ann", "bob"} {
			d["carts"].Rows = append(d["carts"].Rows, []string{fmt.Sprint(first + i), who})
		}
		for i, who := range owners {
			d["lines"].Rows = append(d["lines"].Rows, []string{fmt.Sprint(first + slices.Index([]string{"ann", "bob"}, who)), fmt.Sprint("item ", i)})
		}
		return d
	}
	o := New(Data{}, nil)
	o.Add([]int{1}, Run{nil, data(1, "ann", "bob")})
	for _, c := range []struct {
		end   Data
		equal bool
	}{{data(100, "ann", "bob"), true}, {data(100, "bob", "ann"), false}, {data(100, "ann", "ann"), false}} {
		if d, _, err := o.Judge(Run{nil, c.end}); err != nil || (d == nil) != c.equal {
			t.Errorf("%v: %+v, %v", c.end["lines"].Rows, d, err)
		}
	}
}

// TestPosition: a generated key in a row that existed before the buyers is a reader's position. The reader has not read
// the events after it.
func TestPosition(t *testing.T) {
	end := func(last string, read ...string) Run {
		d := Data{
			"events": {[]Column{{Name: "id", Key: "events.id"}, {Name: "by"}}, [][]string{{"1", "ann"}, {"2", "bob"}}},
			"reader": {[]Column{{Name: "name"}, {Name: "last_id"}}, [][]string{{"mail", last}}},
			"read":   {[]Column{{Name: "event_id"}}, nil},
		}
		for _, id := range read {
			d["read"].Rows = append(d["read"].Rows, []string{id})
		}
		return Run{nil, d}
	}
	o := New(Data{"reader": {[]Column{{Name: "name"}, {Name: "last_id"}}, [][]string{{"mail", "0"}}}}, nil)
	o.Add([]int{1}, Run{nil, Data{ // bob, the reader, ann
		"events": {[]Column{{Name: "id", Key: "events.id"}, {Name: "by"}}, [][]string{{"1", "bob"}, {"2", "ann"}}},
		"reader": {[]Column{{Name: "name"}, {Name: "last_id"}}, [][]string{{"mail", "1"}}},
		"read":   {[]Column{{Name: "event_id"}}, [][]string{{"1"}}},
	}})
	if d, _, _ := o.Judge(end("2", "2")); d == nil {
		t.Error("the reader has skipped ann's event, and no difference is found")
	}
}

// TestSharedRow: a row that both buyers write may be a counter, although its number equals a generated key. A column
// with the name of the key's table is a reference.
func TestSharedRow(t *testing.T) {
	for column, counts := range map[string]bool{"last_no": true, "order_id": false} {
		end := func(number string, buyers ...int) Run {
			d := Data{
				"orders": {[]Column{{Name: "id", Key: "orders.id"}}, nil},
				"daily":  {[]Column{{Name: "day"}, {Name: column}}, [][]string{{"2026-11-28", number}}},
			}
			for i := range buyers {
				d["orders"].Rows = append(d["orders"].Rows, []string{fmt.Sprint(1001 + i)})
			}
			return Run{nil, d}
		}
		o := New(Data{"daily": end("", 0).Data["daily"], "orders": {[]Column{{Name: "id", Key: "orders.id"}}, nil}}, nil)
		o.reset["daily"].Rows = nil
		for _, order := range [][]int{{1, 2}, {2, 1}, {1}, {2}} {
			o.Add(order, end(fmt.Sprint(1000+len(order)), order...))
		}
		o.Add(nil, Run{nil, o.reset})
		if d, _, err := o.Judge(end("1002", 1, 2)); d != nil || err != nil {
			t.Errorf("%s: %+v, %v", column, d, err)
		}
		if d, _, err := o.Judge(end("1001", 1, 2)); (d != nil) != counts || err != nil {
			t.Errorf("%s, a lost update: %+v, %v", column, d, err)
		}
	}
}

// TestPadded: a generated key with leading zeros is a key.
func TestPadded(t *testing.T) {
	end := func(first, second int) Run {
		row := func(id int) []string { return []string{fmt.Sprint(id)} }
		return Run{
			map[int]Answer{1: {Status: 201, Body: fmt.Sprintf(`{"order": "ORD-%05d", "seat": "A"}`, first)}, 2: {Status: 201, Body: fmt.Sprintf(`{"order": "ORD-%05d", "seat": "B"}`, second)}},
			Data{"orders": {[]Column{{Name: "id", Key: "orders.id"}}, [][]string{row(1), row(2)}}},
		}
	}
	o := New(Data{}, nil)
	o.Add([]int{1, 2}, end(1, 2))
	if d, _, err := o.Judge(end(2, 1)); d != nil || err != nil {
		t.Errorf("the seats in another order than the numbers: %+v, %v", d, err)
	}
	if d, _, _ := o.Judge(end(1, 1)); d == nil {
		t.Error("one number for two orders: no difference")
	}
}

// TestRedis: a single key of Redis can be left out. If the value of one key differs each time, the others are still
// compared.
func TestRedis(t *testing.T) {
	end := func(keys ...string) Run {
		d := Data{redisTable: {[]Column{{Name: "key"}, {Name: "value"}}, nil}}
		for i := 0; i < len(keys); i += 2 {
			d[redisTable].Rows = append(d[redisTable].Rows, keys[i:i+2])
		}
		return Run{nil, d}
	}
	o := New(end().Data, []string{"redis.cache:2"})
	o.Add([]int{1}, end("sold", "1", "tip", "34"))
	o.Add([]int{1}, end("sold", "1", "tip", "78"))
	if err := o.Settle(); err != nil || !slices.Equal(o.LeftOut(), []string{"redis.cache:2", "redis.tip"}) {
		t.Fatal(err, o.LeftOut())
	}
	for name, c := range map[string]struct {
		run    Run
		places string
	}{
		"a tip":              {end("sold", "1", "tip", "90"), ""},
		"a cache":            {end("sold", "1", "tip", "90", "cache:2", "x"), ""},
		"another cache":      {end("sold", "1", "tip", "90", "cache:1", "x"), "redis.cache:1"},
		"a lost sale":        {end("sold", "0", "tip", "90"), "redis.sold"},
		"a cache of a token": {end("sold", "1", "tip", "90", "cache:6f9619ff-8b86-d011-b42d-00cf4fc964ff", "x"), "redis.*"},
	} {
		places := ""
		if d, _, _ := o.Judge(c.run); d != nil {
			places = strings.Join(d.Places(), " ")
		}
		if places != c.places {
			t.Errorf("%s: %q, want %q", name, places, c.places)
		}
	}
	if got := o.Unmatched([]string{"redis.cache:2"}); got != nil {
		t.Errorf("entries for nothing: %q", got)
	}
}

// TestSettleAgain: a value that has changed since the first run of an order is left out, even after a run was judged.
func TestSettleAgain(t *testing.T) {
	end := func(pickup string) Run {
		return Run{map[int]Answer{1: {Status: 201, Body: `{"pickup": "` + pickup + `"}`}}, nil}
	}
	o := New(Data{}, nil)
	o.Add([]int{1}, end("18:45"))
	for pickup, ages := range map[string]bool{"18:46": true, "soon": false} {
		if d, _, _ := o.Judge(end(pickup)); d == nil || d.MayAge() != ages {
			t.Errorf("%s instead of 18:45: %+v", pickup, d)
		}
	}
	o.Add([]int{1}, end("18:47"))
	require.NoError(t, o.Settle())
	if d, _, _ := o.Judge(end("18:46")); d != nil {
		t.Errorf("the time of day differs: %+v", d)
	}
}

// TestRenewed: a value that each reset creates anew, such as a login's session, is no difference. A quantity that grows
// with each reset is a difference.
func TestRenewed(t *testing.T) {
	for name, c := range map[string]struct {
		again [3]string // id, token and logins
		want  string
	}{
		"a hexadecimal token": {[3]string{"2", "00112233445566778899aabbccddeeff", "1"}, ""},
		"another token":       {[3]string{"2", "QvJ2-xYz_0aBcDeFgHiJkL", "1"}, ""},
		"a counter":           {[3]string{"2", "ffeeddccbbaa99887766554433221100", "2"}, "sessions"},
		"a text with a stock": {[3]string{"2", `{"item": "apricot", "stock": 9}`, "1"}, "sessions"},
	} {
		t.Run(name, func(t *testing.T) {
			data := func(id, token, logins string) Data {
				return Data{"sessions": {[]Column{{Name: "id", Key: "sessions.id"}, {Name: "token"}, {Name: "logins"}}, [][]string{{id, token, logins}}}}
			}
			o := New(data("1", "ffeeddccbbaa99887766554433221100", "1"), nil)
			o.Renewed(data(c.again[0], c.again[1], c.again[2]))
			if got := strings.Join(slices.Sorted(maps.Keys(o.Unrestored(data("3", strings.ToLower(c.again[1]), c.again[2])))), " "); got != c.want {
				t.Errorf("not restored: %q, want %q", got, c.want)
			}
		})
	}
}

// TestUnrestored: only the column of a time that the reset does not restore is left out. A time that was not there is a
// difference.
func TestUnrestored(t *testing.T) {
	now := func(later time.Duration) string { return time.Now().Add(later).UTC().Format("2006-01-02 15:04:05") }
	data := func(stock, at, paid string) Data {
		return Data{"items": {[]Column{{Name: "id", Key: "items.id"}, {Name: "stock"}, {Name: "updated_at"}, {Name: "paid_at"}}, [][]string{{"1", stock, at, paid}}}}
	}
	for _, c := range []struct {
		again     Data
		want, out string
	}{
		{data("1", now(time.Minute), Null), "", "items.updated_at"},
		{data("1", now(time.Minute)+".123 +0000 UTC", Null), "", "items.updated_at"},
		{data("0", now(time.Minute), Null), "items", "items.* items.updated_at"},
		{data("1", now(time.Minute), now(0)), "items", "items.* items.updated_at"},
	} {
		o := New(data("1", now(0), Null), nil)
		if got := strings.Join(slices.Sorted(maps.Keys(o.Unrestored(c.again))), " "); got != c.want || strings.Join(o.LeftOut(), " ") != c.out {
			t.Errorf("not restored: %q, want %q; left out: %s, want %s", got, c.want, o.LeftOut(), c.out)
		}
	}
}

// TestSettle: a column that differs between two runs of one order is not compared. Any other difference is an error.
func TestSettle(t *testing.T) {
	end := func(token, count string, rows int) Run {
		logged := &Table{[]Column{{Name: "token"}, {Name: "n"}}, nil}
		for range rows {
			logged.Rows = append(logged.Rows, []string{token, count})
		}
		return Run{map[int]Answer{1: {Status: 200, Body: "bought with " + token}}, Data{"log": logged}}
	}
	o := New(Data{}, nil)
	o.Add([]int{1}, end("qwe", "1", 1))
	o.Add([]int{1}, end("rty", "1", 1))
	require.NoError(t, o.Settle())
	if got := strings.Join(o.LeftOut(), ", "); got != "body, log.token" {
		t.Errorf("left out: %s", got)
	}
	if d, _, _ := o.Judge(end("uio", "1", 1)); d != nil {
		t.Errorf("another token: %+v", d)
	}
	d, _, _ := o.Judge(end("uio", "2", 1))
	if d == nil || strings.Join(d.Places(), ", ") != "log.n" {
		t.Errorf("another count: %+v", d)
	}
	if o = New(Data{}, []string{"log.n", "body"}); true {
		o.Add([]int{1}, end("qwe", "1", 1))
		if d, _, _ := o.Judge(end("qwe", "2", 1)); d != nil {
			t.Errorf("with except: %+v", d)
		}
	}
	o = New(Data{}, nil)
	o.Add([]int{1}, end("qwe", "1", 1))
	o.Add([]int{1}, end("qwe", "1", 2))
	if err := o.Settle(); err == nil || !strings.Contains(err.Error(), "log.*") {
		t.Errorf("two rows instead of one: %v", err)
	}
}

// TestFixed: a value that looks random or like the time is compared if it is the same in equal runs. A key
// that several tables have generated belongs to none of them.
func TestFixed(t *testing.T) {
	end := func(balance, due, first, second string) Run {
		id := func(table string) []Column { return []Column{{Name: "id", Key: table + ".id"}} }
		return Run{map[int]Answer{1: {Status: 200, Body: `{"id": 2}`}}, Data{
			"wallet": {[]Column{{Name: "owner"}, {Name: "balance"}, {Name: "due"}}, [][]string{{first, balance, due}, {second, "0", due}}},
			"log":    {id("log"), [][]string{{"2"}, {"3"}}}, "orders": {id("orders"), [][]string{{"2"}}},
		}}
	}
	soon := time.Now().Add(time.Hour).Format("2006-01-02 15:04:05")
	later := time.Now().Add(2 * time.Hour).Format("2006-01-02 15:04:05")
	ann, bob := "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	o := New(end("1.00000000", soon, ann, bob).Data, nil)
	for range 2 {
		o.Add([]int{1}, end("0.50000000", later, ann, bob))
	}
	if err := o.Settle(); err != nil || len(o.LeftOut()) > 0 {
		t.Fatal(err, o.LeftOut())
	}
	for name, c := range map[string]struct {
		run   Run
		wrong bool
	}{
		"the same": {end("0.50000000", later, ann, bob), false}, "a lost debit": {end("0.75000000", later, ann, bob), true},
		"a lost hour": {end("0.50000000", soon, ann, bob), true}, "owners exchanged": {end("0.50000000", later, bob, ann), true},
	} {
		if d, _, err := o.Judge(c.run); err != nil || (d != nil) != c.wrong {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	if got := o.Unmatched([]string{"wallet.due", "log.*", "body /id", "walet.due", "body /it"}); !slices.Equal(got, []string{"walet.due", "body /it"}) {
		t.Errorf("entries for nothing: %q", got)
	}
	o.Add([]int{1}, Run{map[int]Answer{1: {Status: 409}}, nil})
	if err := o.Settle(); err == nil || !strings.Contains(err.Error(), "another status each time") {
		t.Errorf("a status by chance: %v", err)
	}
}

// TestOrders: Orders returns every order of every subset, those of all buyers first.
func TestOrders(t *testing.T) {
	if got := fmt.Sprint(Orders(2)); got != "[[1 2] [2 1] [1] [2] []]" {
		t.Error(got)
	}
	if n := len(Orders(4)); n != 65 {
		t.Errorf("%d orders of 4 buyers", n)
	}
}
