package own

import (
	"fmt"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
)

// owners tracks which buyer holds each key in Redis, and records when a buyer releases another buyer's lock. The
// verdict alone would not show such a mistake if the schedule sells correctly.
type owners struct {
	byKey   map[string]int // buyers by server and key
	foreign bool           // a buyer has released another buyer's lock
}

func (w *owners) finished(o *gate.Op) {
	if o.Server == gate.SQL || o.Key == "" || !o.Changed || o.Role == redisscript.Renew {
		return
	}
	key := o.Server + " " + o.Key
	if o.Role == redisscript.Handover {
		delete(w.byKey, key) // the lock goes to another buyer of the same process, which the command does not name
		return
	}
	if o.Role != redisscript.Release {
		w.byKey[key] = o.Buyer
		return
	}
	owner := w.byKey[key]
	if o.Beside != nil && o.Beside.Buyer == owner {
		return // only the server knows which of the two commands came first
	}
	if owner != 0 && owner != o.Buyer {
		o.Note = fmt.Sprintf("it has deleted the lock of buyer %d", owner)
		w.foreign = true
	}
	delete(w.byKey, key)
}
