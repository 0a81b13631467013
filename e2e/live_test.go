package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// choosing sets strategies and the number of buyers on the leader's page.
func (p *tab) choosing(buyers, stock int, strategies ...string) {
	p.t.Helper()
	p.until(`document.querySelectorAll('#choices input:not(:disabled)').length > 0`)
	p.click("#choose-none")
	for _, s := range strategies {
		p.click("#strategy-" + s)
	}
	p.fill("#buyers", fmt.Sprint(buyers))
	p.fill("#stock", fmt.Sprint(stock))
}

// runs waits until n runs are listed and each has ended. A run has a page to download only after its
// end.
func (p *tab) runs(n int) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelectorAll('#runs > li').length === %d && document.querySelectorAll('#runs > li .links a[download]').length === %d &&
		!document.querySelector('#send').disabled`, n, n))
}

// TestLivePage checks each of the leader's buttons, before and after a run.
func TestLivePage(t *testing.T) {
	s := startShop(t)
	p := open(t, s, "/")
	p.visible("#lanes .lane")
	p.visible("#room .room-controls") // the room's panel is next to the lanes
	p.axe()
	p.fits()

	p.click("#choose-none")
	p.click("#send")
	p.says("#form-message", "at least one strategy")
	p.click("#choose-all")
	p.until(`[...document.querySelectorAll('#choices input:not(:disabled)')].every((box) => box.checked)`)
	breaks, holds := s.promising("oversold"), s.promising("holds")
	p.choosing(0, 100, breaks)
	p.click("#send")
	p.until(`document.querySelector('#form-message').textContent.length > 0`)
	p.choosing(200, 100, breaks, holds)
	p.click("#send")
	p.runs(1)
	p.says("#runs", holds)
	p.until(fmt.Sprintf(`document.querySelector('[data-strategy=%q]').textContent.includes('holds')`, holds))
	p.until(fmt.Sprintf(`/oversold|drifted/.test(document.querySelector('[data-strategy=%q]').textContent)`, breaks))
	p.axe()
	p.fits()

	p.until(`document.querySelectorAll('#fault option').length > 0`)
	p.click("#break")
	p.runs(2)
	p.until(`document.querySelector('#runs .strike').textContent.includes(' took effect')`) // the space in front excludes "did not take effect"
	p.whole()
	p.choosing(2000, 100, holds)
	p.click("#send")
	p.visible("#stop")
	p.click("#stop")
	p.runs(3)

	p.until(`!!document.querySelector('.links a[download]')`)
	var link string
	p.eval(`document.querySelector('.links a').getAttribute('href')`, &link)
	saved := open(t, s, link)
	saved.axe()
	var elsewhere int
	saved.eval(`[...document.querySelectorAll('[src], link[href]')].filter((e) => !(e.src || e.href).startsWith('data:')).length`, &elsewhere)
	if elsewhere > 0 {
		t.Errorf("the saved run has %d files beside it", elsewhere)
	}
	p.saves("#runs .links a[download]", "Repeat it: shop rush")
	p.click("#runs summary")
	p.says("#runs code", "rush")
	p.click("#runs .copy")
	p.until(`document.querySelector('#runs .copy').textContent !== 'copy'`)
}

// whole fails the test if any text of a lane is cut off.
func (p *tab) whole() {
	p.t.Helper()
	var cut []string
	p.eval(`[...document.querySelectorAll('.lane')].filter((l) => l.scrollHeight > l.clientHeight + 1 || [...l.querySelectorAll('.foot')].some((f) => f.getBoundingClientRect().bottom > l.getBoundingClientRect().bottom + 1))
		.map((l) => l.dataset.strategy + ': ' + l.querySelector('.reason').textContent)`, &cut)
	for _, words := range cut {
		p.t.Errorf("cut: %s", words)
	}
}

// TestLiveOneScreen: up to six lanes fit without scrolling on a projector of 1280 x 800, in a
// browser window on it, and when zoomed.
func TestLiveOneScreen(t *testing.T) {
	s := startShop(t)
	p := open(t, s, "/")
	p.until(`document.querySelectorAll('#choices input:not(:disabled)').length > 0`)
	var names []string
	p.eval(`[...document.querySelectorAll('#choices input:not(:disabled)')].map((box) => box.value).slice(0, 6)`, &names)
	for i, n := range []int{1, 2, 3, 4, 6} {
		p.size(1280, 800)
		p.choosing(60, 30, names[:n]...)
		p.eval(`document.querySelector('#processes').value = 2`, nil)
		p.click("#break")
		p.runs(i + 1)
		for _, screen := range [][2]int64{{1280, 800}, {1280, 650}, {1164, 590}, {1024, 520}} {
			p.size(screen[0], screen[1])
			p.until(fmt.Sprintf(`innerHeight === %d && document.querySelectorAll('.lane').length === %d`, screen[1], n))
			p.eval(`new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))`, nil)
			var below []string
			p.eval(`[...document.querySelectorAll('.lane canvas')].filter((c) => { const b = c.getBoundingClientRect(); return b.bottom > innerHeight || b.top < 0 || b.height < 45; }).map((c) => c.closest('.lane').dataset.strategy)`, &below)
			if len(below) > 0 {
				t.Errorf("%d lanes at %dx%d: the picture is not seen of %q", n, screen[0], screen[1], below)
			}
			p.whole()
		}
	}
	p.size(390, 844) // a phone shows the form first, and the lanes once a run has started
	p.click("#send")
	p.until(`document.querySelector('#send').disabled && document.querySelector('#stage').getBoundingClientRect().top < innerHeight / 3`)
	p.runs(6)
}

// TestLiveBreakNow: the button injects a fault into a run under way. The page then shows no promise for
// the run, and the run's command contains the fault.
func TestLiveBreakNow(t *testing.T) {
	s := startShop(t)
	p := open(t, s, "/")
	var names []string
	p.until(`document.querySelectorAll('#choices input:not(:disabled)').length > 0`)
	p.eval(`[...document.querySelectorAll('#choices input:not(:disabled)')].map((box) => box.value).slice(0, 4)`, &names)
	p.choosing(1000, 500, names...)
	p.click("#send")
	p.until(`document.querySelector('#break').textContent === 'Break it now'`)
	p.click("#break")
	p.runs(1)
	p.until(`document.querySelector('#runs .strike').textContent.includes(' took effect')`)
	p.says("#runs code", "by hand")
	p.says("#lanes", "a fault was injected by hand, so no promise applies")
}

func (p *tab) saves(selector, want string) {
	p.t.Helper()
	dir := p.t.TempDir()
	if err := chromedp.Run(p.ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		return cdpbrowser.SetDownloadBehavior(cdpbrowser.SetDownloadBehaviorBehaviorAllow).WithBrowserContextID(p.profile).WithDownloadPath(dir).
			Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
	})); err != nil {
		p.t.Fatal(err)
	}
	p.click(selector)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(dir, "*.html"))
		if err != nil || len(files) == 0 {
			continue
		}
		if body, err := os.ReadFile(files[0]); err == nil && bytes.Contains(body, []byte("</html>")) && bytes.Contains(body, []byte(want)) {
			return
		}
	}
	p.t.Fatalf("%s saved no page", selector)
}

// TestLiveRestart: an open page continues after its shop restarts.
func TestLiveRestart(t *testing.T) {
	s := startShop(t)
	p := open(t, s, "/")
	holds := s.promising("holds")
	p.choosing(50, 20, holds)
	p.click("#send")
	p.runs(1)
	s.stop()
	p.says("#link", "does not answer")
	s.start(s.url[len("http://"):])
	p.until(`document.querySelector('#link').textContent.startsWith('live')`)
	p.until(`document.querySelectorAll('#runs > li').length === 0`) // the new shop has no runs
	p.choosing(50, 20, holds)
	p.click("#send")
	p.runs(1)
}

// TestLiveToken: on an address other than loopback, a run needs the token. The page asks for it
// once.
func TestLiveToken(t *testing.T) {
	t.Setenv("SHOP_ADMIN_TOKEN", "s3cret")
	s := startShop(t, "--addr", "0.0.0.0:0")
	p := open(t, s, "/")
	p.choosing(20, 10, s.promising("holds"))
	p.click("#send")
	p.visible("#token")
	p.fill("#token", "secret")
	p.click("#token-ok")
	p.says("#token-wrong", "that is not the shop's SHOP_ADMIN_TOKEN")
	p.visible("#token-wrong") // above the backdrop, in the dialog, which is still open
	p.axe()
	p.fill("#token", "s3cret")
	p.click("#token-ok")
	p.runs(1)
	p.says("#runs", "holds")
	p.choose("#room-strategy", s.promising("holds")) // the token is also valid for the room
	p.click("#room-restock")
	p.says(".room-door", ": shut")
	if wrong := p.text(".room-wrong"); wrong != "" {
		t.Error(wrong)
	}
}
