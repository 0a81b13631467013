package rush

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// interrupted is a service with a counter of free units beside the stock. A fault answers the first buyers
// with an error, after the others have their answers.
type interrupted struct {
	market
	cut    int64 // number of buyers that the fault answers with an error
	leaks  int64 // units that these buyers reserve and do not give back
	errors int64 // errors after the fault

	door          sync.Mutex
	free, arrived int64
	others        sync.WaitGroup // other buyers of the burst that the fault interrupts
}

func (i *interrupted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/product/buy" {
		i.market.ServeHTTP(w, r)
		return
	}
	i.door.Lock()
	i.arrived++
	isCut, isOther := i.arrived <= i.cut, i.arrived > i.cut && i.arrived <= 20
	fails := isCut || !isOther && i.errors > 0
	soldOut := i.free <= 0 && !i.oversells && !fails
	if !soldOut && !(fails && !isCut) {
		i.free--
	}
	if fails && !isCut {
		i.errors--
	}
	i.door.Unlock()
	if isCut {
		i.others.Wait()
		i.door.Lock()
		if i.leaks--; i.leaks < 0 {
			i.free++
		}
		i.door.Unlock()
	}
	switch {
	case fails:
		w.WriteHeader(http.StatusInternalServerError)
	case soldOut:
		w.WriteHeader(http.StatusConflict)
	default:
		i.market.ServeHTTP(w, r)
	}
	if isOther {
		i.others.Done()
	}
}

// TestRestAfterAFault: after a fault, a burst asks for the units that are left. It shows whether they can still
// be sold, and whether the shop sells more than these units.
func TestRestAfterAFault(t *testing.T) {
	for _, c := range []struct {
		name string
		shop *interrupted
		want verdict.Verdict
		says string
	}{
		{"all given back", &interrupted{cut: 6}, verdict.Holds, "; the fault left 6 without an answer, and 12 buyers asked for the rest"},
		{"two never given back", &interrupted{cut: 6, leaks: 2}, verdict.Leaked, "2 units are left and 8 buyers were told that it is sold out"},
		{"the others could not oversell", &interrupted{cut: 12, market: market{oversells: true}}, verdict.Oversold, "units sold of 10 stocked"},
		{"a broken connection", &interrupted{cut: 6, errors: 1}, verdict.Holds, ""},
		{"errors for good", &interrupted{cut: 6, errors: 1000}, verdict.Failed, "answered with an error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.shop.free = 10
			c.shop.others.Add(20 - int(c.shop.cut))
			config := rushAt(t, c.shop)
			config.Stock, config.Buyers = 10, 20
			config.FaultTookEffect = func() bool { return true }
			r, err := Run(t.Context(), config)
			if err != nil || r.Verdict != c.want || !strings.Contains(r.Reason, c.says) {
				t.Errorf("%s (%s), %v; want %s (%s)", r.Verdict, r.Reason, err, c.want, c.says)
			}
		})
	}
}
