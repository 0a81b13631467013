package buyers_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// TestLeavers: every third waiting buyer hangs up, and the service notices. A buyer with an answer does
// not count.
func TestLeavers(t *testing.T) {
	const size = 9
	asked, gone, goOn := make(chan struct{}, size), make(chan struct{}, size), make(chan struct{})
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
	var leavers buyers.Leavers
	all := make([]buyers.Buyer, size)
	for i := range all {
		all[i].Name = string(rune('a' + i))
	}
	answers := make(chan []buyers.Answer, 1)
	go func() {
		answers <- buyers.Sender{URLs: []string{service.URL}, Strategy: "any", Product: "apple", Timeout: time.Minute, Leavers: &leavers}.AtOnce(t.Context(), all)
	}()
	for range size {
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
