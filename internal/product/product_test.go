package product_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/require"
)

func put(t *testing.T, db *gorm.DB, name string, amount int64) product.Product {
	t.Helper()
	require.NoError(t, product.Put(db, name, amount))
	return read(t, db, name)
}

func read(t *testing.T, db *gorm.DB, name string) product.Product {
	t.Helper()
	p, err := product.ByName(db, name)
	require.NoError(t, err)
	return p
}

// TestPut: Put creates a product, or resets it except for the version, so that a writer from before
// the reset is still refused.
func TestPut(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		db := open(t).DB
		p := put(t, db, "pear", 10)
		if p.Amount != 10 || p.Stocked != 10 || p.Fence != 0 {
			t.Errorf("a new product: %+v", p)
		}
		if written, err := product.SetAmountAt(db, p.ID, 3, p.Version); !written || err != nil {
			t.Fatalf("%t, %v", written, err)
		}
		if sealed, err := product.Seal(db, "pear", 7); !sealed || err != nil {
			t.Fatalf("%t, %v", sealed, err)
		}
		before := read(t, db, "pear")
		after := put(t, db, "pear", 5)
		if after.ID != before.ID || after.Amount != 5 || after.Stocked != 5 || after.Fence != 0 || after.Version <= before.Version {
			t.Errorf("%+v after a reset of %+v", after, before)
		}
		if written, err := product.SetAmountAt(db, after.ID, 0, before.Version); written || err != nil {
			t.Errorf("a writer from before the reset: written %t, %v", written, err)
		}
		if written, err := product.SetAmountFenced(db, after.ID, 0, 7); written || err != nil {
			t.Errorf("a holder from before the reset: written %t, %v", written, err)
		}
		if err := product.Put(db, " pear", 5); err == nil {
			t.Error("a name with white space was put")
		}
		if err := product.Put(db, "Pear", 1); err != nil { // names are compared as bytes
			t.Error(err)
		}
		expect.Equal(t, read(t, db, "pear").Amount, 5, "Pear has changed pear")
	})
}

// TestList: products are sorted by name, and the list is never null.
func TestList(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		db := open(t).DB
		require.NoError(t, db.Exec("DELETE FROM product").Error)
		if all, err := product.List(db); err != nil || all == nil || len(all) != 0 {
			t.Errorf("%v, %v; want an empty list", all, err)
		}
		for _, name := range []string{"pear", "apple", "Zucchini", "äpfel"} {
			put(t, db, name, 1)
		}
		all, err := product.List(db)
		var names []string
		for _, p := range all {
			names = append(names, p.Name)
		}
		if want := []string{"Zucchini", "apple", "pear", "äpfel"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("%v, %v; want %v", names, err, want)
		}
	})
}

// TestWrites: each write changes the row if it may, and reports whether it did.
func TestWrites(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		db := open(t).DB
		p := put(t, db, "pear", 10)
		const nobody = 1 << 40
		for _, c := range []struct {
			name    string
			write   func() (bool, error)
			written bool
			amount  int64 // stock afterwards
		}{
			{"unguarded", func() (bool, error) { return true, product.SetAmount(db, p.ID, 9) }, true, 9},
			{"unguarded, the number that is there", func() (bool, error) { return true, product.SetAmount(db, p.ID, 9) }, true, 9},
			{"at the version", func() (bool, error) { return product.SetAmountAt(db, p.ID, 8, p.Version) }, true, 8},
			{"at an old version", func() (bool, error) { return product.SetAmountAt(db, p.ID, 1, p.Version) }, false, 8},
			{"sealed", func() (bool, error) { return product.Seal(db, "pear", 5) }, true, 8},
			{"sealed with the same token", func() (bool, error) { return product.Seal(db, "pear", 5) }, false, 8},
			{"sealed with a lower token", func() (bool, error) { return product.Seal(db, "pear", 4) }, false, 8},
			{"under the highest token", func() (bool, error) { return product.SetAmountFenced(db, p.ID, 7, 5) }, true, 7},
			{"under a lower token", func() (bool, error) { return product.SetAmountFenced(db, p.ID, 1, 4) }, false, 7},
			{"under a token that has not sealed", func() (bool, error) { return product.SetAmountFenced(db, p.ID, 1, 6) }, false, 7},
			{"taken", func() (bool, error) { return product.TakeIfLeft(db, "pear", 7) }, true, 0},
			{"taken from nothing", func() (bool, error) { return product.TakeIfLeft(db, "pear", 1) }, false, 0},
			{"taken of no product", func() (bool, error) { return product.TakeIfLeft(db, "quince", 1) }, false, 0},
			{"sealed of no product", func() (bool, error) { return product.Seal(db, "quince", 9) }, false, 0},
			{"put back", func() (bool, error) { return true, product.Take(db, "pear", -2) }, true, 2},
		} {
			written, err := c.write()
			if err != nil || written != c.written {
				t.Errorf("%s: written %t, %v; want %t", c.name, written, err, c.written)
			}
			expect.Equal(t, read(t, db, "pear").Amount, c.amount, c.name, "the stock")
		}
		if err := product.SetAmount(db, nobody, 1); err == nil {
			t.Error("a row that is not there was written")
		}
		expect.ErrorIs(t, product.Take(db, "quince", 1), product.ErrNotFound, "no product")
		if _, err := product.ByName(db, "quince"); !errors.Is(err, product.ErrNotFound) || !strings.Contains(err.Error(), "quince") {
			t.Errorf("read of no product: %v", err)
		}
	})
}

// TestSetAmountAfter: the last entry of the stream is written with the stock. The version is raised
// even if both are unchanged, so that the COMMIT reaches the disk.
func TestSetAmountAfter(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		db := open(t).DB
		p := put(t, db, "pear", 10)
		for range 2 {
			require.NoError(t, product.SetAmountAfter(db, p.ID, 9, "1-2"))
		}
		if now := read(t, db, "pear"); now.Amount != 9 || now.LastEntry != "1-2" || now.Version != p.Version+2 {
			t.Errorf("%+v after two writes to %+v", now, p)
		}
	})
}

func TestCheckName(t *testing.T) {
	for name, says := range map[string]string{
		"apple":                                "",
		"Äpfel und Birnen":                     "",
		"苹果":                                   "",
		strings.Repeat("ä", product.MaxName):   "",
		"":                                     "is empty",
		strings.Repeat("ä", product.MaxName+1): "256 characters",
		" apple":                               "white space",
		"apple\u00a0":                          "white space",
		"app\nle":                              "control character",
		"app\x00le":                            "control character",
		"app\xffle":                            "not UTF-8",
		"app\ufffdle":                          "U+FFFD",
		"apple\u2028":                          "white space",
		"apple' OR '1'='1":                     "",
	} {
		err := product.CheckName(name)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", name, err, says)
		}
	}
}
