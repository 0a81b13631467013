package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/lockstrategytest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

type roomSale struct {
	Stock int64 `json:"stock"`
	Sold  int64 `json:"sold"`
}

type roomBuyer struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Waiting bool   `json:"waiting"`
	Beyond  bool   `json:"beyond"`
	Times   int    `json:"times"`
	Unit    int64  `json:"unit"`
}

type roomPanel struct {
	Sale       roomSale         `json:"sale"`
	Buyers     []roomBuyer      `json:"buyers"`
	Outcomes   map[string]int64 `json:"outcomes"`
	Pages      []string         `json:"pages"`
	NeedsToken bool             `json:"needs_token"`
}

// roomRush makes phones press at once for half as many units. It sends the requests of the leader's
// and the phones' pages. It returns the panel's content.
func roomRush(t *testing.T, base, strategy string, phones int) roomPanel {
	t.Helper()
	sale := fmt.Sprintf(`{"product":"apple","strategy":%q,"stock":%d}`, strategy, phones/2)
	webtest.RequireOK(t, webtest.Call(t, http.MethodPut, base+"/room/sale", sale, asJSON), "put on sale")
	webtest.RequireOK(t, webtest.Call(t, http.MethodPut, base+"/room/door", `{"open":true,"in_seconds":1}`, asJSON), "open")
	var pressed sync.WaitGroup
	for n := range phones {
		pressed.Go(func() {
			body := fmt.Sprintf(`{"phone":"%016x","name":"Ann %d"}`, n, n)
			r := webtest.Call(t, http.MethodPost, base+"/room/buy", body, http.Header{"Idempotency-Key": {fmt.Sprintf("%s-%d", strategy, n)}, "Content-Type": {"application/json"}})
			var answer struct{ Outcome, Says, Detail string }
			if err := json.Unmarshal(r.Body, &answer); err != nil || answer.Says+answer.Detail == "" || answer.Outcome == "failed" {
				t.Errorf("%s: phone %d: %d %s", strategy, n, r.Status, r.Body)
			}
		})
	}
	pressed.Wait()
	return webtest.Decode[roomPanel](t, webtest.Call(t, http.MethodGet, base+"/room/buyers", "", nil))
}

// TestRoom: a hundred phones press at once. If the strategy promises to hold, the panel, the phones
// and the database agree. If it promises to oversell, it does, and the panel shows it.
func TestRoom(t *testing.T) {
	t.Parallel()
	e := enginetest.Embedded(t)
	base := startServe(t, e.URLs)
	const phones = 100
	seen := map[verdict.Verdict]bool{}
	for _, entry := range lockstrategy.All() {
		promised := entry.Promised(promise.Rush, e.Database)
		if seen[promised] || promised != verdict.Holds && promised != verdict.Oversold || !lockstrategytest.OnEmbedded(entry) {
			continue
		}
		seen[promised] = true
		for crowd := 1; ; crowd++ {
			panel, books := roomRush(t, base, entry.Name, phones), webtest.Audit(t, base, "apple")
			twice := slices.ContainsFunc(panel.Buyers, func(b roomBuyer) bool { return b.Times > 1 || b.Beyond })
			if len(panel.Buyers) != phones || panel.Sale.Sold != books.UnitsSold || panel.Outcomes["sold"] != books.Records {
				t.Errorf("%s: %d buyers, %+v %v; the books say %+v", entry.Name, len(panel.Buyers), panel.Sale, panel.Outcomes, books)
			}
			broken := books.Drift > 0
			t.Logf("%s, crowd %d: %v, %+v", entry.Name, crowd, panel.Outcomes, books)
			if promised == verdict.Holds && (broken || twice || books.Leftover > 0) {
				t.Errorf("%s promises to hold: %+v, and the panel has a unit sold twice: %t", entry.Name, books, twice)
			}
			if promised == verdict.Oversold && broken && !twice {
				t.Errorf("%s: %+v, and the panel shows no unit that was sold twice", entry.Name, books)
			}
			if promised == verdict.Holds || broken {
				break
			}
			if crowd == verdict.Crowds {
				t.Errorf("%s promises to be oversold, and %d crowds have not shown it", entry.Name, crowd)
				break
			}
		}
	}
	expect.Equal(t, len(seen), 2, "promises that were tried", seen)
}

// TestRoomUnits: with a strategy that holds, no phone is told that another phone got the same unit.
func TestRoomUnits(t *testing.T) {
	tier.Test(t, "a sale for each strategy")
	t.Parallel()
	e := enginetest.Embedded(t)
	base := startServe(t, e.URLs)
	for _, entry := range lockstrategy.All() {
		if entry.Promised(promise.Rush, e.Database) != verdict.Holds || !lockstrategytest.OnEmbedded(entry) {
			continue
		}
		panel := roomRush(t, base, entry.Name, 20)
		for _, b := range panel.Buyers {
			if b.Times > 1 || b.Beyond || b.Waiting {
				t.Errorf("%s: %+v", entry.Name, b)
			}
			if b.Outcome == "sold" && (b.Unit > 0) != soldTells(entry.Name) {
				t.Errorf("%s: %+v, and the live page says of its receipts that they tell the unit: %t", entry.Name, b, soldTells(entry.Name))
			}
		}
		expect.Equal(t, panel.Sale.Sold, panel.Sale.Stock, entry.Name, panel.Sale, panel.Outcomes)
	}
}

// TestRoomRestock: any restock of the product on sale clears the room's results. A restock of
// another product does not.
func TestRoomRestock(t *testing.T) {
	t.Parallel()
	base := startServe(t, engine.Config{})
	before := roomRush(t, base, lockstrategy.Names()[0], 4)
	webtest.Restock(t, base, "pear", 3)
	after := webtest.Decode[roomPanel](t, webtest.Call(t, http.MethodGet, base+"/room/buyers", "", nil))
	if after.Sale.Sold != before.Sale.Sold || before.Sale.Sold == 0 {
		t.Errorf("%+v and %+v: a pear is no apple", before.Sale, after.Sale)
	}
	webtest.Restock(t, base, "apple", 3)
	after = webtest.Decode[roomPanel](t, webtest.Call(t, http.MethodGet, base+"/room/buyers", "", nil))
	if after.Sale.Sold != 0 || after.Sale.Stock != 3 || len(after.Buyers) != 4 || after.Buyers[0].Outcome != "" {
		t.Errorf("%+v, %+v; want a sale of 3 and no buyer served", after.Sale, after.Buyers)
	}
}

// TestRoomAdmin: on an address other than loopback the leader needs the token, and the buyers do
// not.
func TestRoomAdmin(t *testing.T) {
	t.Parallel()
	base := startServe(t, engine.Config{}, elsewhere("s3cret"))
	base = "http://127.0.0.1" + base[strings.LastIndex(base, ":"):]
	token := http.Header{"Authorization": {"Bearer s3cret"}, "Content-Type": {"application/json"}}
	sale := fmt.Sprintf(`{"product":"apple","strategy":%q,"stock":1}`, lockstrategy.Names()[0])
	for _, route := range []struct{ path, body string }{{"/room/sale", sale}, {"/room/door", `{"open":true}`}} {
		webtest.WantProblem(t, webtest.Call(t, http.MethodPut, base+route.path, route.body, nil), http.StatusUnauthorized, "failed")
		webtest.WantStatus(t, webtest.Call(t, http.MethodPut, base+route.path, route.body, token), http.StatusOK, route.path, "with the token")
	}
	buyer := `{"phone":"0123456789abcdef","name":"Ann"}`
	webtest.WantStatus(t, webtest.Call(t, http.MethodPost, base+"/room/buy", buyer, http.Header{"Idempotency-Key": {"a"}, "Content-Type": {"application/json"}}), http.StatusOK, "a buyer needs no token")
	long := http.Header{"Idempotency-Key": {strings.Repeat("a", 256)}, "Content-Type": {"application/json"}}
	webtest.WantProblem(t, webtest.Call(t, http.MethodPost, base+"/room/buy", buyer, long), http.StatusBadRequest, "failed")
	panel := webtest.Decode[roomPanel](t, webtest.Call(t, http.MethodGet, base+"/room/buyers", "", nil))
	code := webtest.Call(t, http.MethodGet, base+"/room/qr.svg", "", nil)
	if !panel.NeedsToken || len(panel.Pages) > 0 && code.Status != http.StatusOK || len(panel.Pages) == 0 && code.Status != http.StatusNotFound {
		t.Errorf("%+v, and the code is %d", panel, code.Status)
	}
}

// TestRoomBadInput: the error is one line that says what to do.
func TestRoomBadInput(t *testing.T) {
	t.Parallel()
	base := startServe(t, engine.Config{})
	const ann = `{"phone":"0123456789abcdef","name":"Ann"}`
	for _, c := range []struct {
		method, path, body, says string
		status                   int
	}{
		{http.MethodPost, "/room/buyers", `{"phone":"0123456789abcdef","name":""}`, "the name is empty", 400},
		{http.MethodPost, "/room/buyers", `{"phone":"0123456789abcdef","name":"` + strings.Repeat("x", 41) + `"}`, "41 characters, and the maximum is 40", 400},
		{http.MethodPost, "/room/buyers", `{"phone":"0123456789abcdef","name":"a\u0007"}`, "control character", 400},
		{http.MethodPost, "/room/buyers", `{"phone":"../x","name":"Ann"}`, "phone is not an id", 400},
		{http.MethodPost, "/room/buyers", `{"phone":"0123456789abcdef","nmae":"Ann"}`, "nmae", 400},
		{http.MethodPost, "/room/buy", ann, "Idempotency-Key", 400},
		{http.MethodPut, "/room/sale", `{"product":"","strategy":"` + lockstrategy.Names()[0] + `","stock":1}`, "product", 400},
		{http.MethodPut, "/room/sale", `{"product":"buy","strategy":"` + lockstrategy.Names()[0] + `","stock":1}`, "buy", 400},
		{http.MethodPut, "/room/door", `{"open":true,"in_seconds":-1}`, "in_seconds must be between 0 and 5", 400},
		{http.MethodPut, "/room/sale", `{"product":"apple","strategy":"nonesuch","stock":1}`, "GET /strategies lists them", 400},
		{http.MethodPut, "/room/sale", `{"product":"apple","strategy":"` + lockstrategy.Names()[0] + `","stock":0}`, "stock must be between 1 and ", 400},
		{http.MethodPut, "/room/sale", `{"product":"nonesuch","strategy":"` + lockstrategy.Names()[0] + `","stock":1}`, `no such product as "nonesuch"; GET /product lists them`, 404},
		{http.MethodPut, "/room/door", `{}`, "open is missing", 400},
		{http.MethodPut, "/room/door", `{"open":true,"in_seconds":99999999999}`, "in_seconds must be between 0 and 5", 400},
		{http.MethodPut, "/room/door", `{"open":false,"in_seconds":1}`, "leave it out", 400},
		{http.MethodPut, "/room/door", `{"open":true}`, "nothing is on sale", 409},
		{http.MethodGet, "/room/qr.svg", "", "--addr 0.0.0.0", 404},
	} {
		r := webtest.Call(t, c.method, base+c.path, c.body, asJSON)
		webtest.WantProblem(t, r, c.status, "failed", c.says)
	}
	for _, path := range []string{"/room/buyers", "/room/buy"} { // as sent by a form on another site's page
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded"} {
			r := webtest.Call(t, http.MethodPost, base+path, ann, http.Header{"Idempotency-Key": {"a"}, "Content-Type": {kind}})
			webtest.WantProblem(t, r, http.StatusUnsupportedMediaType, "failed", "application/json")
		}
	}
	r := webtest.Call(t, http.MethodPost, base+"/room/buy", ann, http.Header{"Idempotency-Key": {"a"}, "Content-Type": {"application/json"}})
	webtest.WantProblem(t, r, http.StatusConflict, "failed", "nothing on sale")
}
