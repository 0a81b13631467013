package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
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

// runs waits until n runs are listed and none is under way. A run under way has no page yet.
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
	p.shot("live-rest")
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
	p.shot("live-after")
	p.axe()
	p.fits()
	p.theme("dark", "reduce")
	p.shot("live-after-dark")
	p.theme("light", "no-preference")

	p.until(`document.querySelectorAll('#fault option').length > 0`)
	p.click("#break")
	p.runs(2)
	p.until(`document.querySelector('#runs .strike').textContent.includes(' took effect')`) // "did not take effect" must not match
	p.shot("live-broken")
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
			p.shot(fmt.Sprintf("live-%d-lanes-%dx%d", n, screen[0], screen[1]))
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

// TestLiveBreakNow: the button injects a fault into a run under way. That run is compared with no
// promise, and its command injects the fault, too.
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

// saves clicks a link that saves a page and checks the file.
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

// TestLiveReload: a visitor who reloads during a rush, or opens a second tab, sees the run under
// way and its verdicts.
func TestLiveReload(t *testing.T) {
	s := startShop(t)
	p := open(t, s, "/")
	var names []string
	p.until(`document.querySelectorAll('#choices input:not(:disabled)').length > 0`)
	p.eval(`[...document.querySelectorAll('#choices input:not(:disabled)')].map((box) => box.value).slice(0, 5)`, &names)
	p.choosing(2000, 1000, names...)
	p.click("#send")
	p.until(`document.querySelector('#send').disabled`)
	p.shot("live-mid-rush")
	p.reload()
	p.until(`document.querySelectorAll('#lanes .lane').length > 0`)
	second := p.secondTab("/")
	late := open(t, s, "/")
	for _, tab := range []*tab{p, second, late} {
		tab.runs(1)
		for _, name := range names {
			tab.until(fmt.Sprintf(`!!document.querySelector('[data-strategy=%q] .tag:not(.now)')`, name))
		}
	}
	p.axe()
}

// TestLiveRestart: an open page goes on after its shop restarts.
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
	p.shot("live-token-wrong")
	p.axe()
	p.fill("#token", "s3cret")
	p.click("#token-ok")
	p.runs(1)
	p.says("#runs", "holds")
}

// TestLiveRoom: the room's panel is on the page, next to the lanes.
func TestLiveRoom(t *testing.T) {
	s := startShop(t)
	p := open(t, s, "/")
	p.visible("#room .room-controls")
	for n := range 100 {
		s.call(http.MethodPost, "/room/buyers", fmt.Sprintf(`{"phone":"%016x","name":"Phone %d"}`, n, n), nil, nil)
	}
	p.until(`document.querySelectorAll('#room .room-buyer').length === 100`)
	p.axe()
	p.fits()
	p.size(1920, 1080)
	p.shot("live-room")
	p.eval(`document.querySelector('#room').scrollIntoView()`, nil)
	p.shot("live-room-scrolled")
}

// TestLiveTiming prints how soon the page shows something, and its frame rate during a rush of 200
// buyers. It asserts nothing about these figures.
func TestLiveTiming(t *testing.T) {
	s := startShop(t)
	p := open(t, s, "/")
	p.visible("#lanes .lane")
	var paint, lanes float64
	p.eval(`performance.getEntriesByName('first-contentful-paint')[0].startTime`, &paint)
	p.eval(`performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd`, &lanes)
	load, _ := os.ReadFile("/proc/loadavg") // the machine's other load; the file exists only on Linux
	t.Logf("load before: %s", bytes.TrimSpace(load))
	t.Logf("first picture after %.0f ms, document ready after %.0f ms", paint, lanes)

	breaks, holds := s.promising("oversold"), s.promising("holds")
	p.choosing(200, 100, breaks, holds)
	p.eval(`(() => {
		window.frames_ = [];
		const frame = (t) => { window.frames_.push(t); window.frame_ = requestAnimationFrame(frame); };
		window.frame_ = requestAnimationFrame(frame);
	})()`, nil)
	p.click("#send")
	p.runs(1)
	var f struct {
		Frames  int     `json:"frames"`
		Seconds float64 `json:"seconds"`
		Longest float64 `json:"longest"`
		Slow    int     `json:"slow"`
	}
	p.eval(`(() => {
		cancelAnimationFrame(window.frame_);
		const t = window.frames_, gaps = t.slice(1).map((x, i) => x - t[i]);
		return {frames: t.length, seconds: (t.at(-1) - t[0]) / 1000, longest: Math.max(...gaps), slow: gaps.filter((g) => g > 1000 / 30 + 1).length};
	})()`, &f)
	t.Logf("rush of 200 under %s and %s: %d frames in %.2f s, %.1f a second; longest gap %.0f ms, %d gaps above 1/30 s",
		breaks, holds, f.Frames, f.Seconds, float64(f.Frames)/f.Seconds, f.Longest, f.Slow)
}
