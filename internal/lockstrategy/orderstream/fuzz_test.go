package orderstream

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// FuzzReadEntry: an entry of the stream is either refused or an order for a positive number of
// units.
func FuzzReadEntry(f *testing.F) {
	f.Add("1-2", "1", "key", "ann", "1700000000000000")
	f.Add("5", "0", "", "", "0") // written by load.lua
	f.Add("18446744073709551615-18446744073709551615", "1000", "key", "ann", "-1")
	f.Add("1-", "-1", "key", "ann", "x")
	f.Add("-", "1001", "key", "ann", "9223372036854775807")
	f.Fuzz(func(t *testing.T, id, units, key, purchaser, called string) {
		o, err := readEntry("redis-lua", "apple", redis.XMessage{ID: id, Values: map[string]any{
			"units": units, "key": key, "purchaser": purchaser, "called": called,
		}})
		if err != nil {
			return
		}
		if o.receipt.Amount < 0 {
			t.Errorf("units %q are %d", units, o.receipt.Amount)
		}
		if o.entry != id || o.key != key || o.id.after(o.id) || o.id.after(entryID{1 << 63, 0}) && (entryID{1 << 63, 0}).after(o.id) {
			t.Errorf("%+v of %q", o, id)
		}
	})
}
