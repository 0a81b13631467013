package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
)

// enter types a name on a phone's page.
func (p *tab) enter(name string) {
	p.t.Helper()
	p.visible("#naming")
	p.fill("#name", name)
	p.key(kb.Enter)
	p.visible("#buy")
}

// onSale puts units on sale on the room's panel.
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
	phone.shot("phone-name")
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
	phone.shot("phone-shut")
	leader.click("#room-toggle")
	phone.says("#sale", "open") // or "opens": a slow machine may miss the countdown
	phone.click("#buy")
	phone.shot("phone-door")
	phone.says("#says", "You got unit 1 of 2.")
	phone.shot("phone-sold")
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
	phone.shot("phone-sold-out")
	leader.says(".room-sums", "3 presses: 2 sold, 1 sold out")
	leader.says(".room-count", "1 buyer")

	phone.click("#rename")
	phone.enter("Ann")
	leader.says(".room-name", "Ann")
	phone.theme("dark", "reduce")
	phone.shot("phone-dark")
	phone.size(844, 390)
	phone.shot("phone-landscape")
	phone.fits()
}

// TestRoomRestart: phones and panel go on after their shop restarts.
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

// TestRoomShut: a leader without a mouse starts, opens and shuts a sale. A phone that comes after
// the end is told so.
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
// for the phones.
func TestRoomLeader(t *testing.T) {
	t.Setenv("SHOP_ADMIN_TOKEN", "s3cret")
	s := startShop(t, "--addr", "0.0.0.0:0")
	leader := open(t, s, "/room/screen")
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
	leader.shot("screen-token")
	leader.axe()
	leader.theme("dark", "reduce")
	leader.shot("screen-token-dark")
	leader.reload()
	leader.until(`document.querySelector('#room-token').value === 's3cret'`)
	leader.fits()
}

// TestRoomToken: the token for the live page is also valid for the room.
func TestRoomToken(t *testing.T) {
	t.Setenv("SHOP_ADMIN_TOKEN", "s3cret")
	s := startShop(t, "--addr", "0.0.0.0:0")
	leader := open(t, s, "/")
	leader.until(`!document.querySelector('#send').disabled && document.querySelector('#choices').children.length > 0`)
	leader.click("#choose-none")
	leader.click("#strategy-" + s.promising("holds"))
	leader.click("#send")
	leader.visible("#token")
	leader.fill("#token", "s3cret")
	leader.key(kb.Enter)
	leader.until(`!document.querySelector('#token-dialog').open && !document.querySelector('#form-message').classList.contains('wrong')`)
	leader.choose("#room-strategy", s.promising("holds"))
	leader.click("#room-restock")
	leader.says(".room-door", ": shut")
	if wrong := leader.text(".room-wrong"); wrong != "" {
		t.Error(wrong)
	}
}

// TestRoomTokenTabs: a token typed in one tab works in the other tabs, open or opened later.
func TestRoomTokenTabs(t *testing.T) {
	t.Setenv("SHOP_ADMIN_TOKEN", "s3cret")
	s := startShop(t, "--addr", "0.0.0.0:0")
	screen := open(t, s, "/room/screen")
	before := screen.secondTab("/")
	screen.until(`document.querySelector('#room-strategy').options.length > 0`)
	screen.fill("#room-token", "s3cret")
	screen.onSale(s.promising("holds"), 5)
	for i, live := range []*tab{before, screen.secondTab("/")} {
		live.until(`document.querySelector('#room-token').value === 's3cret'`)
		live.choosing(20, 10, s.promising("holds"))
		live.click("#send")
		live.runs(i + 1)
	}
}

// TestRoomSameName: two people with the same name are distinguished, on the screen and on the
// phone.
func TestRoomSameName(t *testing.T) {
	s := startShop(t)
	leader, first, later := open(t, s, "/room/screen"), open(t, s, "/room"), open(t, s, "/room")
	first.enter("Ann")
	leader.says(".room-name", "Ann")
	later.enter("Ann")
	leader.says(".room-buyer:nth-child(2) .room-name", "Ann (2)")
	later.says("#shown-name", "Ann (2)")
	if got := first.text("#shown-name"); got != "Ann" {
		t.Errorf("the first is %q", got)
	}
}

// TestRoomHundred: a hundred phones press at once. With a strategy that oversells, the panel shows
// it. With a strategy that holds, it shows that stock and records agree.
func TestRoomHundred(t *testing.T) {
	s := startShop(t)
	leader := open(t, s, "/room/screen")
	leader.size(1920, 1080)
	tabs := []*tab{}
	for n := range 3 {
		p := open(t, s, "/room")
		p.size(390, 844)
		p.enter(fmt.Sprintf("Tab %d", n))
		tabs = append(tabs, p)
	}
	rush := func(strategy string) {
		leader.onSale(strategy, 50)
		var asked, pressed sync.WaitGroup
		asked.Add(97)
		var slowest atomic.Int64
		for n := range 97 {
			pressed.Go(func() { s.phone(n, &asked, &slowest) })
		}
		asked.Wait() // each phone has joined
		leader.until(`document.querySelectorAll('.room-buyer').length === 100`)
		leader.shot("screen-before-" + strategy)
		leader.click("#room-toggle")
		for _, p := range tabs {
			p.says("#sale", "open")
			p.click("#buy")
		}
		pressed.Wait()
		for _, p := range tabs {
			p.until(`/You got|Sold out/.test(document.querySelector('#says').textContent)`)
		}
		t.Logf("%s: the slowest of the phones' questions took %s", strategy, time.Duration(slowest.Load()).Round(time.Millisecond))
		leader.says(".room-sums", "100 presses")
		leader.until(`!document.querySelector('.room-is-waiting')`)
	}

	holds := s.promising("holds")
	rush(holds)
	leader.says(".room-verdict", "stock and records agree")
	leader.says(".room-sums", "100 presses: 50 sold, 50 sold out")
	leader.until(`!document.querySelector('.room-is-over')`)
	leader.shot("screen-after-" + holds)

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
	t.Logf("%s: %s, %s", breaks, leader.text(".room-verdict"), leader.text(".room-sums"))
	leader.shot("screen-after-" + breaks)
	tabs[0].shot("phone-oversold")
	leader.axe()
	leader.theme("dark", "reduce")
	leader.shot("screen-after-dark")
	tabs[0].axe()
	leader.fits()
	leader.size(320, 900)
	leader.shot("screen-320")
	leader.size(2560, 1440)
	leader.shot("screen-2560")
}

// phone acts like the phone's page: it joins, polls every second, and presses when the sale is
// about to open.
func (s *shop) phone(n int, inRoom *sync.WaitGroup, slowest *atomic.Int64) {
	body := fmt.Sprintf(`{"phone":"%016x","name":"Phone %d"}`, n, n)
	if status := s.call(http.MethodPost, "/room/buyers", body, nil, nil); status != http.StatusOK {
		s.t.Errorf("phone %d comes in: %d", n, status)
	}
	inRoom.Done()
	var answer struct{ Sale struct{ State string } }
	for deadline := time.Now().Add(patience); answer.Sale.State != "opening" && answer.Sale.State != "open"; time.Sleep(time.Second) {
		began := time.Now()
		status := s.call(http.MethodGet, fmt.Sprintf("/room/sale?phone=%016x", n), "", nil, &answer)
		for took := int64(time.Since(began)); ; {
			if most := slowest.Load(); took <= most || slowest.CompareAndSwap(most, took) {
				break
			}
		}
		if status != http.StatusOK || time.Now().After(deadline) {
			s.t.Errorf("phone %d asks: %d %+v", n, status, answer)
			return
		}
		if answer.Sale.State != "shut" {
			break
		}
	}
	var got struct{ Says, Detail string }
	status := s.call(http.MethodPost, "/room/buy", body, http.Header{"Idempotency-Key": {fmt.Sprintf("%d-%d", n, time.Now().UnixNano())}}, &got)
	if got.Says+got.Detail == "" || status != http.StatusOK && status != http.StatusConflict && status != http.StatusServiceUnavailable {
		s.t.Errorf("phone %d presses: %d %+v", n, status, got)
	}
}
