package rush_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/purchase"
)

// TestLeavers: each third of those who wait hangs up, the service sees it, and who has an
// answer is not counted.
func TestLeavers(t *testing.T) {
	const buyers = 9
	asked, gone, goOn := make(chan struct{}, buyers), make(chan struct{}, buyers), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("purchaser") == "" { // the gate opens its connections
			return
		}
		asked <- struct{}{}
		select {
		case <-r.Context().Done():
			gone <- struct{}{}
		case <-goOn:
			w.WriteHeader(http.StatusConflict)
		}
	}))
	defer service.Close()
	var leavers rush.Leavers
	all := make([]rush.Buyer, buyers)
	for i := range all {
		all[i].Name = string(rune('a' + i))
	}
	answers := make(chan []rush.Answer, 1)
	go func() {
		answers <- rush.Crowd{BaseURLs: []string{service.URL}, Strategy: "any", Product: "apple", Timeout: time.Minute, Leavers: &leavers}.Send(t.Context(), all)
	}()
	for range buyers {
		<-asked
	}
	if left := leavers.HangUp(3); left != 3 {
		t.Errorf("%d hung up, want 3", left)
	}
	for range 3 {
		<-gone
	}
	close(goOn)
	hungUp := 0
	for _, a := range <-answers {
		if a.HungUp && a.Outcome == purchase.Unknown {
			hungUp++
		}
	}
	if hungUp != 3 || leavers.HangUp(1) != 0 {
		t.Errorf("%d answers are of buyers that hung up", hungUp)
	}
}
