package room

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCheckName: the error for an invalid name is one line.
func TestCheckName(t *testing.T) {
	for _, c := range []struct{ name, says string }{
		{"Ann", ""},
		{"J\u00f6rg \u674e \U0001f469\u200d\U0001f680", ""},
		{`<img src=x onerror=alert(1)>`, ""}, // a name like any other: pages show it as text
		{strings.Repeat("\u00e4", MaxName), ""},
		{strings.Repeat("a", MaxName+1), "has 41 characters, and the maximum is 40"},
		{"", "is empty"},
		{"  ", "white space"},
		{" Ann", "white space"},
		{"A\nB", "control character"},
		{"A\x00", "control character"},
		{"\xff", "UTF-8"},
		{"\u200b\u200d", "nothing that can be seen"},
	} {
		err := CheckName(c.name)
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%q: %v, want none", c.name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%q: %v, want one line with %q", c.name, err, c.says)
		}
	}
}

// counter sells numbered units from a stock, like a correct shop.
type counter struct {
	mu       sync.Mutex
	stock    int64
	left     int64
	receipts map[string]purchase.Receipt
	room     *Room
	unsure   string // the key whose first answer is lost
}

func (k *counter) sell(_ context.Context, strategy string, o purchase.Order) (purchase.Receipt, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r, ok := k.receipts[o.IdempotencyKey]; ok {
		r.Replayed = true
		return r, nil
	}
	if k.left == 0 {
		return purchase.Receipt{}, fmt.Errorf("apple: %w", purchase.ErrSoldOut)
	}
	if strategy != "same" { // "same" sells the same unit to every buyer
		k.left--
	}
	r := purchase.Receipt{ID: int64(len(k.receipts)) + 1, Left: k.left, Amount: 1}
	if strategy == "same" {
		r.Left--
	}
	k.receipts[o.IdempotencyKey] = r
	if o.IdempotencyKey == k.unsure {
		return purchase.Receipt{}, purchase.ErrUnknownOutcome
	}
	return r, nil
}

func (k *counter) restock(_ context.Context, name string, units int64) error {
	k.mu.Lock()
	k.stock, k.left, k.receipts = units, units, map[string]purchase.Receipt{}
	k.mu.Unlock()
	k.room.Restocked(name, units)
	return nil
}

func (k *counter) known(_ context.Context, name string) error {
	if name != "apple" {
		return purchase.ErrNoProduct
	}
	return nil
}

func open(t *testing.T, strategy string, units int64) *Room {
	t.Helper()
	k := &counter{unsure: "unsure"}
	k.room = New(Config{Sell: k.sell, CheckProduct: k.known, Restock: k.restock, Strategies: []Strategy{{Name: "holds", ReceiptShowsUnit: true}, {Name: "same", ReceiptShowsUnit: true}, {Name: "lags"}}})
	require.NoError(t, k.room.Put(t.Context(), "apple", strategy, units))
	require.NoError(t, k.room.Open(0))
	return k.room
}

func phone(n int) string { return fmt.Sprintf("%016x", n) }

// TestPress: a press gets an answer in words, and a repeated press gets the same answer.
func TestPress(t *testing.T) {
	r := open(t, "holds", 1)
	for _, c := range []struct {
		phone     int
		key, says string
		err       error
	}{
		{1, "a", "You got unit 1 of 1.", nil},
		{1, "a", "You got unit 1 of 1.", nil},
		{2, "b", "Sold out", purchase.ErrSoldOut},
	} {
		says, err := r.Press(t.Context(), Phone{phone(c.phone), "Ann", ""}, c.key)
		if c.err != nil {
			says = err.Error()
		}
		if !errors.Is(err, c.err) || !strings.HasPrefix(says, c.says) {
			t.Errorf("press %s: %q, %v; want %q, %v", c.key, says, err, c.says, c.err)
		}
	}
	if got := r.panelView(); got.Outcomes[purchase.Sold] != 1 || got.Outcomes[purchase.SoldOut] != 1 || got.Sale.Sold != 1 || got.Buyers[0].Units != 1 {
		t.Errorf("the panel sees %+v; the repeated press is no second sale", got)
	}
}

// TestUnknown: a press whose answer was lost counts once, when it is repeated.
func TestUnknown(t *testing.T) {
	r := open(t, "holds", 3)
	if _, err := r.Press(t.Context(), Phone{phone(1), "Ann", ""}, "unsure"); !errors.Is(err, purchase.ErrUnknownOutcome) || !strings.Contains(err.Error(), "cannot buy twice") {
		t.Errorf("the first press: %v", err)
	}
	for range 2 {
		if says, err := r.Press(t.Context(), Phone{phone(1), "Ann", ""}, "unsure"); err != nil || says != "You got unit 1 of 3." {
			t.Errorf("the same press again: %q, %v", says, err)
		}
	}
	if got := r.panelView(); got.Sale.Sold != 1 || got.Buyers[0].Units != 1 {
		t.Errorf("%+v; want one unit sold", got)
	}
	if says, err := r.Press(t.Context(), Phone{phone(1), "Ann", ""}, "another"); err != nil || says != "You got unit 2 of 3. You have 2 now." {
		t.Errorf("a second press: %q, %v", says, err)
	}
}

// TestSoldTwice: all phones with the same unit are told so, including the first one.
func TestSoldTwice(t *testing.T) {
	r := open(t, "same", 1)
	for n := range 3 {
		require.NoError(t, expect.ErrorOf(r.Press(t.Context(), Phone{phone(n), "Ann", ""}, phone(n))))
	}
	got := r.seenBy(phone(0))
	if want := "You got unit 1 of 1. So did 2 others. The shop sold more than it had: 3 of 1."; got.Says != want || got.You.Times != 3 {
		t.Errorf("got %q, %+v; want %q and 3 times", got.Says, got.You, want)
	}
	if b := r.panelView().Buyers; b[0].Beyond || !b[1].Beyond || !b[2].Beyond {
		t.Errorf("beyond the stock are the second and the third of one unit: %+v", b)
	}
}

// TestLags: if the remaining stock does not identify a unit, no phone is told a number that others
// have, too.
func TestLags(t *testing.T) {
	r := open(t, "lags", 5)
	for n := range 3 {
		says, err := r.Press(t.Context(), Phone{phone(n), "Ann", ""}, phone(n))
		if err != nil || says != "You got one." {
			t.Errorf("%q, %v; want no number", says, err)
		}
	}
	for _, b := range r.panelView().Buyers {
		if b.Times != 0 || b.Unit != 0 {
			t.Errorf("%+v is told of a unit", b)
		}
	}
}

// TestBounds: a room keeps the most recent phones, up to its limit.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, "holds", 1)
		for n := range MaxBuyers + 20 {
			time.Sleep(time.Millisecond)
			require.NoError(t, r.Join(Phone{phone(n), fmt.Sprint(n), ""}))
			r.seenBy(phone(0)) // phone 0 continues to poll
		}
		buyers := r.panelView().Buyers
		if len(buyers) != MaxBuyers || buyers[0].Name != "0" || buyers[1].Name != "21" || buyers[MaxBuyers-1].Name != "319" {
			t.Errorf("%d buyers, %+v ...; want %d: the first, which still polls, and the newest", len(buyers), buyers[:2], MaxBuyers)
		}
		if err := r.Join(Phone{phone(0), "another name", ""}); err != nil || len(r.panelView().Buyers) != MaxBuyers || r.panelView().Buyers[0].Name != "another name" {
			t.Errorf("a phone has one name: %v, %+v", err, r.panelView().Buyers[0])
		}
		time.Sleep(maxSilence + time.Second)
		r.seenBy(phone(0))
		require.NoError(t, r.Put(t.Context(), "apple", "holds", 3))
		if got := r.panelView().Buyers; len(got) != 1 || got[0].Outcome != "" {
			t.Errorf("after a restock there are %+v; want the one that still asks, without an outcome", got)
		}
	})
}

// TestDoor: early buyers wait at the door and go in together. A buyer at a shut door is told so.
func TestDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, "holds", 100)
		r.Shut()
		expect.ErrorIs(t, expect.ErrorOf(r.Press(t.Context(), Phone{phone(1), "Ann", ""}, "a")), errShut, "a press at a shut door")
		answers := make(chan error, 2*MaxBuyers)
		press := func(n int) {
			go func() {
				_, err := r.Press(t.Context(), Phone{phone(n), "Ann", ""}, phone(n))
				answers <- err
			}()
		}
		open := func() {
			require.NoError(t, r.Open(3))
			for n := range MaxBuyers {
				press(n)
			}
			synctest.Wait()
			if got := r.panelView().Sale; len(answers) != 0 || got.State != "opening" || got.OpensInMS != 3_000 {
				t.Errorf("%d went in, %+v", len(answers), got)
			}
		}
		open()
		press(MaxBuyers)
		expect.ErrorIs(t, <-answers, errFull, "one too many at the door")
		r.Shut()
		for range MaxBuyers {
			expect.ErrorIs(t, <-answers, errShut, "shut before it opened")
		}
		open()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		sold := 0
		for range MaxBuyers {
			if <-answers == nil {
				sold++
			}
		}
		expect.Equal(t, sold, 100, "sales")
		for _, b := range r.panelView().Buyers {
			if b.Waiting {
				t.Errorf("%+v still waits", b)
			}
		}
	})
}

// TestHungUp: a buyer that leaves the door has bought nothing and no longer waits.
func TestHungUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, "holds", 1)
		r.Shut()
		require.NoError(t, r.Open(1))
		ctx, hangUp := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := r.Press(ctx, Phone{phone(1), "Ann", ""}, "a")
			done <- err
		}()
		synctest.Wait()
		hangUp()
		if err := <-done; !errors.Is(err, context.Canceled) || r.panelView().Buyers[0].Waiting {
			t.Errorf("%v; %+v", err, r.panelView().Buyers)
		}
		r.Shut()
	})
}

// TestOnePress: a phone has one press under way. A repeated request waits for its answer, and
// buys if the first request hangs up. Another press is refused.
func TestOnePress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, "holds", 5)
		r.Shut()
		require.NoError(t, r.Open(1))
		type answer struct {
			says string
			err  error
		}
		first, hangUp := context.WithCancel(t.Context())
		answers := make(chan answer, 3)
		for _, ctx := range []context.Context{first, t.Context(), t.Context()} {
			go func() {
				says, err := r.Press(ctx, Phone{phone(1), "Ann", ""}, "a")
				answers <- answer{says, err}
			}()
			synctest.Wait()
		}
		for n := range 2 * MaxBuyers {
			if _, err := r.Press(t.Context(), Phone{phone(1), "Ann", ""}, fmt.Sprint(n)); !errors.Is(err, errPressing) {
				t.Fatalf("another press of the same phone: %v", err)
			}
		}
		hangUp()
		expect.ErrorIs(t, (<-answers).err, context.Canceled, "the press that hung up")
		time.Sleep(time.Second)
		for range 2 {
			if a := <-answers; a.err != nil || a.says != "You got unit 1 of 5." {
				t.Errorf("the same press: %+v", a)
			}
		}
		if got := r.panelView(); got.Sale.Sold != 1 || got.Outcomes[purchase.Sold] != 1 || got.Buyers[0].Waiting {
			t.Errorf("%+v; want one press, and one unit sold", got)
		}
	})
}

// TestInvented: invented ids of one address remove no phones of others, and a class of 100 behind
// one address is admitted.
func TestInvented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, "holds", MaxBuyers)
		press := func(n int, from string) error {
			time.Sleep(time.Millisecond)
			_, err := r.Press(t.Context(), Phone{phone(n), "Ann", from}, phone(n))
			return err
		}
		for n := range 100 {
			require.NoError(t, errors.Join(r.Join(Phone{phone(n), "Ann", "10.0.0.1"}), press(n, "10.0.0.1")))
		}
		for n := range 50 { // phones that have not pressed yet
			require.NoError(t, r.Join(Phone{phone(500 + n), "Bob", "10.0.0.3"}))
		}
		for n := range 10 * MaxBuyers {
			time.Sleep(time.Millisecond)
			require.NoError(t, r.Join(Phone{phone(1000 + n), "X", "10.0.0.2"}))
		}
		for n := range 50 {
			if r.seenBy(phone(500+n)).You == nil {
				t.Fatalf("phone %d, which has not pressed yet, is pushed out", n)
			}
		}
		for n := range 10 * MaxBuyers { // from the same address as the class, without a press
			time.Sleep(time.Millisecond)
			require.NoError(t, r.Join(Phone{phone(10000 + n), "X", "10.0.0.1"}))
		}
		for n := range 100 {
			if got := r.seenBy(phone(n)); got.You == nil || got.You.Units != 1 {
				t.Fatalf("phone %d is pushed out: %+v", n, got)
			}
		}
		if got := len(r.panelView().Buyers); got > MaxBuyers {
			t.Errorf("%d phones", got)
		}
	})
}

// TestBeyond: a repeated press gets the same answer about the stock, whatever was sold since.
func TestBeyond(t *testing.T) {
	r := open(t, "same", 1)
	for _, n := range []int{1, 2, 1} {
		require.NoError(t, expect.ErrorOf(r.Press(t.Context(), Phone{phone(n), "Ann", ""}, phone(n))))
	}
	if b := r.panelView().Buyers; b[0].Beyond || !b[1].Beyond {
		t.Errorf("the first of one unit pressed twice: %+v", b)
	}
}

// TestUnknownProduct: an unknown product cannot be put on sale, and the present sale stays open.
func TestUnknownProduct(t *testing.T) {
	r := open(t, "holds", 1)
	expect.ErrorIs(t, r.Put(t.Context(), "pear", "holds", 5), purchase.ErrNoProduct)
	if got := r.panelView().Sale; got.Product != "apple" || got.State != "open" {
		t.Errorf("the sale has changed: %+v", got)
	}
}

// TestSameName: two buyers with the same name are distinguished, and each keeps its name.
func TestSameName(t *testing.T) {
	r := open(t, "holds", 1)
	join := func(n int, name string) {
		t.Helper()
		require.NoError(t, r.Join(Phone{phone(n), name, ""}))
	}
	names := func() (all []string) {
		for _, b := range r.panelView().Buyers {
			all = append(all, b.Name)
		}
		return all
	}
	for n, name := range []string{"Ann", "Ann", "Bob", "Ann", "Ann (2)"} {
		join(n, name)
	}
	expect.DeepEqual(t, names(), []string{"Ann", "Ann (2)", "Bob", "Ann (3)", "Ann (2) (2)"})
	join(0, "Zoe") // the others keep their numbers
	join(1, "Ann")
	join(2, "Ann")
	expect.DeepEqual(t, names(), []string{"Zoe", "Ann (2)", "Ann", "Ann (3)", "Ann (2) (2)"})
}
