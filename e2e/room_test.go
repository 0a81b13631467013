package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
)

func (p *tab) enter(name string) {
	p.t.Helper()
	p.visible("#naming")
	p.fill("#name", name)
	p.key(kb.Enter)
	p.visible("#buy")
}

func (p *tab) onSale(strategy string, units int) {
	p.t.Helper()
	p.choose("#room-strategy", strategy)
	p.fill("#room-stock", fmt.Sprint(units))
	p.click("#room-restock")
	p.says(".room-door", "apple under "+strategy+": shut")
	p.until(fmt.Sprintf(`document.querySelector('.room-figure output').textContent === '%d'`, units))
}

// TestRoomPage: a person types a name, buys by mouse and by keyboard, and reads the result. A
// reload and a second tab show it, too.
func TestRoomPage(t *testing.T) {
	s := startShop(t)
	leader := open(t, s, "/room/screen")
	phone := open(t, s, "/room")
	phone.size(390, 844)
	phone.visible("#naming")
	phone.axe()

	phone.key(kb.Enter) // nothing is typed or focused
	phone.click("#naming button")
	phone.says("#naming-error", "the name is empty")
	phone.fill("#name", "A name that is much longer than forty characters")
	phone.key(kb.Enter)
	phone.says("#naming-error", "the maximum is 40")
	const name = `<img src=x onerror=alert(1)>`
	phone.enter(name)
	if got := phone.text("#shown-name"); got != name {
		t.Errorf("the name is shown as %q", got)
	}
	leader.says(".room-name", name)
	for _, p := range []*tab{phone, leader} {
		var images int
		p.eval(`document.querySelectorAll('img').length`, &images)
		if images > 0 {
			t.Error("a name has become HTML")
		}
	}

	phone.says("#says", "Wait for the leader")
	phone.click("#buy")
	phone.says("#says", "nothing on sale")
	leader.onSale(s.promising("holds"), 2)
	phone.says("#sale", "2 \u00d7 apple")
	leader.click("#room-toggle")
	phone.says("#sale", "open") // also matches "opens": a slow machine may miss the countdown
	phone.click("#buy")
	phone.says("#says", "You got unit 1 of 2.")
	phone.axe()

	phone.reload()
	phone.says("#says", "You got unit 1 of 2.")
	second := phone.secondTab("/room")
	second.says("#says", "You got unit 1 of 2.")
	second.eval(`document.querySelector('#buy').focus()`, nil)
	second.key(" ")
	second.says("#says", "You got unit 2 of 2.")
	phone.says("#says", "You got unit 2 of 2.")
	phone.eval(`document.querySelector('#buy').focus()`, nil)
	phone.key(kb.Enter)
	phone.says("#says", "Sold out")
	leader.says(".room-sums", "3 presses: 2 sold, 1 sold out")
	leader.says(".room-count", "1 buyer")

	phone.click("#rename")
	phone.enter("Ann")
	leader.says(".room-name", "Ann")
	later := open(t, s, "/room")
	later.enter("Ann")
	leader.says(".room-buyer:nth-child(2) .room-name", "Ann (2)")
	later.says("#shown-name", "Ann (2)")
	phone.says("#shown-name", "Ann")
	phone.fits()
}

// TestRoomRestart: the phones and the leader's panel continue after their shop restarts.
func TestRoomRestart(t *testing.T) {
	s := startShop(t)
	leader, phone := open(t, s, "/room/screen"), open(t, s, "/room")
	phone.enter("Ann")
	leader.onSale(s.promising("holds"), 5)
	leader.says(".room-name", "Ann")
	s.stop()
	phone.says("#sale", "does not answer")
	leader.says(".room-door", "does not answer")
	phone.click("#buy")
	phone.says("#says", "you cannot buy twice")
	s.start(s.url[len("http://"):])
	phone.says("#sale", "Nothing is on sale yet")
	leader.says(".room-name", "Ann") // the phone has joined again by itself
	leader.onSale(s.promising("holds"), 5)
	leader.click("#room-toggle")
	phone.says("#sale", "open")
	phone.click("#buy")
	phone.says("#says", "You got unit 1 of 5.")
	leader.says(".room-word", "unit 1")
}

// TestRoomShut: a leader without a mouse starts, opens and shuts a sale. A phone that comes later shows
// that the sale is over.
func TestRoomShut(t *testing.T) {
	s := startShop(t)
	leader, phone := open(t, s, "/room/screen"), open(t, s, "/room")
	phone.enter("Ann")
	leader.until(`document.querySelector('#room-strategy').options.length > 0`)
	leader.eval(`document.querySelector('#room-stock').focus()`, nil)
	leader.key(kb.Enter) // submits the form
	leader.says(".room-door", "shut")
	leader.key(kb.Tab)
	leader.key(kb.Tab)
	var focused string
	leader.eval(`document.activeElement.id`, &focused)
	if focused != "room-toggle" {
		t.Fatalf("two tabs after the stock is %q", focused)
	}
	leader.key(" ")
	leader.says(".room-door", "open")
	leader.says("#room-toggle", "Shut")
	leader.until(`document.querySelector('.room-door').textContent.endsWith('open')`)
	leader.key(" ")
	leader.says(".room-door", "shut")
	phone.says("#sale", "shut")
	phone.click("#buy")
	phone.says("#says", "wait for the leader to open it")
	leader.says(".room-word", "is here")
}

// TestRoomLeader: on an address other than loopback, the panel asks for the token and shows a code
// for the phones. The token works in the other tabs, open or opened later.
func TestRoomLeader(t *testing.T) {
	t.Setenv("SHOP_ADMIN_TOKEN", "s3cret")
	s := startShop(t, "--addr", "0.0.0.0:0")
	leader := open(t, s, "/room/screen")
	before := leader.secondTab("/")
	leader.visible("#room-token")
	leader.until(`document.querySelector('.room-page').textContent.length > 0`)
	var pages int
	leader.eval(`document.querySelector('#room-pages').options.length`, &pages)
	if pages > 0 {
		leader.visible(".room-code svg")
	}
	leader.until(`document.querySelector('#room-strategy').options.length > 0`)
	leader.click("#room-restock")
	leader.says(".room-wrong", "SHOP_ADMIN_TOKEN")
	leader.fill("#room-token", "s3cret")
	leader.onSale(s.promising("holds"), 5)
	leader.axe()
	leader.reload()
	leader.until(`document.querySelector('#room-token').value === 's3cret'`)
	leader.fits()
	for i, live := range []*tab{before, leader.secondTab("/")} {
		live.until(`document.querySelector('#room-token').value === 's3cret'`)
		live.choosing(20, 10, s.promising("holds"))
		live.click("#send")
		live.runs(i + 1)
	}
}

// TestRoomOversold: with a strategy that oversells, the panel shows the units that were sold twice. With
// a strategy that holds, it shows that stock and records agree.
func TestRoomOversold(t *testing.T) {
	s := startShop(t)
	leader, phone := open(t, s, "/room/screen"), open(t, s, "/room")
	phone.enter("Ann")
	const others = 99
	rush := func(strategy string) {
		leader.onSale(strategy, (others+1)/2)
		leader.click("#room-toggle")
		phone.says("#sale", "open") // also matches "opens"
		phone.click("#buy")
		var pressed sync.WaitGroup
		for n := range others { // the other buyers wait until the sale opens
			pressed.Go(func() {
				body := fmt.Sprintf(`{"phone":"%016x","name":"Phone %d"}`, n, n)
				key := http.Header{"Idempotency-Key": {fmt.Sprintf("%d-%d", n, time.Now().UnixNano())}}
				if status := s.call(http.MethodPost, "/room/buy", body, key, nil); status != http.StatusOK && status != http.StatusConflict && status != http.StatusServiceUnavailable {
					t.Errorf("phone %d presses: %d", n, status)
				}
			})
		}
		pressed.Wait()
		phone.until(`/You got|Sold out/.test(document.querySelector('#says').textContent)`)
		leader.says(".room-sums", "100 presses")
		leader.until(`!document.querySelector('.room-is-waiting')`)
		leader.until(`document.querySelectorAll('.room-buyer').length === 100`)
	}

	rush(s.promising("holds"))
	leader.says(".room-verdict", "stock and records agree")
	leader.says(".room-sums", "100 presses: 50 sold, 50 sold out")
	leader.until(`!document.querySelector('.room-is-over')`)

	breaks := s.promising("oversold")
	for crowd := 1; ; crowd++ {
		rush(breaks)
		leader.until(`document.querySelector('.room-verdict strong').textContent !== 'no sale yet'`)
		if leader.text(".room-verdict strong") != "stock and records agree" {
			break
		}
		if crowd == 3 {
			t.Fatalf("%s promises to be oversold, and three crowds have not shown it", breaks)
		}
	}
	leader.until(`document.querySelectorAll('.room-is-over').length > 1`)
	leader.axe()
	phone.axe()
	leader.fits()
}
