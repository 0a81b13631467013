package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

const chromium = "/usr/bin/chromium"

// browser is one Chromium for all tests. Each tab has its own profile, unless secondTab opens it.
// TestMain ends the browser.
var browser context.Context

func TestMain(m *testing.M) {
	if _, err := os.Stat(chromium); err != nil {
		fmt.Fprintln(os.Stderr, "no "+chromium+"; install it: apt-get install -y chromium")
		os.Exit(1)
	}
	profile, err := os.MkdirTemp("", "oversell-e2e-profile-")
	if err != nil {
		panic(err)
	}
	allocator, closeAll := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(chromium), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.Headless, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-background-timer-throttling", true), chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("disable-backgrounding-occluded-windows", true), chromedp.Flag("lang", "en"), chromedp.WSURLReadTimeout(patience))
	var closeBrowser context.CancelFunc
	browser, closeBrowser = chromedp.NewContext(allocator)
	code := 1
	if err := chromedp.Run(browser); err != nil {
		fmt.Fprintln(os.Stderr, "start chromium:", err)
	} else {
		code = m.Run()
	}
	closeBrowser()
	closeAll()
	_ = os.RemoveAll(profile)
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// axeSource returns axe-core in the version of package-lock.json.
var axeSource = sync.OnceValues(func() (string, error) {
	const file = "node_modules/axe-core/axe.min.js"
	if _, err := os.Stat(file); err != nil {
		if out, err := exec.Command("npm", "ci", "--ignore-scripts").CombinedOutput(); err != nil {
			return "", fmt.Errorf("npm ci in e2e: %w: %s; npm is in: apt-get install -y npm", err, out)
		}
	}
	source, err := os.ReadFile(file)
	return string(source), err
})

// A tab is one page in the browser.
type tab struct {
	t       *testing.T
	ctx     context.Context
	shop    *shop
	profile cdp.BrowserContextID

	mu     sync.Mutex
	others []string // requests to other hosts
	wrong  []string // exceptions and violations of the content policy
}

// open opens a page of the shop in a new profile, as another phone would.
func open(t *testing.T, s *shop, path string) *tab {
	t.Helper()
	executor := cdp.WithExecutor(browser, chromedp.FromContext(browser).Browser)
	profile, err := target.CreateBrowserContext().Do(executor)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.DisposeBrowserContext(profile).Do(executor) }) // at the end, after its tabs
	return openIn(t, s, path, profile)
}

// secondTab opens a page in the same profile, as the same person would.
func (p *tab) secondTab(path string) *tab {
	p.t.Helper()
	return openIn(p.t, p.shop, path, p.profile)
}

// openIn opens a window. A new profile has no window, and a tab needs one.
func openIn(t *testing.T, s *shop, path string, profile cdp.BrowserContextID) *tab {
	t.Helper()
	executor := cdp.WithExecutor(browser, chromedp.FromContext(browser).Browser)
	id, err := target.CreateTarget("about:blank").WithBrowserContextID(profile).WithNewWindow(true).Do(executor)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := chromedp.NewContext(browser, chromedp.WithTargetID(id))
	p := &tab{t: t, ctx: ctx, shop: s, profile: profile}
	chromedp.ListenTarget(ctx, p.hear)
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), runtime.Enable()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		if len(p.others) > 0 {
			t.Errorf("%s: requests left the shop: %q", path, p.others)
		}
		if len(p.wrong) > 0 {
			t.Errorf("%s: the page has errors: %q", path, p.wrong)
		}
		p.mu.Unlock()
		end()
	})
	p.size(1280, 800)
	p.go_(path)
	return p
}

// hear records errors and requests that no page may cause.
func (p *tab) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		url := e.Request.URL
		if !strings.HasPrefix(url, p.shop.url+"/") && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") && !strings.HasPrefix(url, "about:") {
			p.others = append(p.others, url)
		}
	case *runtime.EventExceptionThrown:
		p.wrong = append(p.wrong, e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError && e.Entry.Source != log.SourceNetwork { // a shop refuses requests while it restarts
			p.wrong = append(p.wrong, e.Entry.Text)
		}
	}
}

func (p *tab) run(actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("%v; the page says: %.1500s", err, p.dump())
	}
}

func (p *tab) dump() (text string) {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	_ = chromedp.Run(ctx, chromedp.Evaluate(`document.body?.innerText ?? ''`, &text))
	return text
}

func (p *tab) go_(path string) { p.t.Helper(); p.run(chromedp.Navigate(p.shop.url + path)) }

func (p *tab) reload() { p.t.Helper(); p.run(chromedp.Reload()) }

// click clicks the middle of the element with the mouse.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.run(chromedp.ScrollIntoView(selector, chromedp.ByQuery), chromedp.Click(selector, chromedp.ByQuery, chromedp.NodeVisible))
}

func (p *tab) key(key string) { p.t.Helper(); p.run(chromedp.KeyEvent(key)) }

// fill replaces the value of a field, by keyboard.
func (p *tab) fill(selector, text string) {
	p.t.Helper()
	p.eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.focus(); e.select?.(); })()`, selector), nil)
	p.run(chromedp.KeyEvent(text))
}

func (p *tab) choose(selector, value string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`[...(document.querySelector(%q)?.options ?? [])].some((o) => o.value === %q)`, selector, value))
	p.eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event('change', {bubbles: true})); })()`, selector, value), nil)
}

// eval evaluates an expression, awaits a promise, and decodes the value into v.
func (p *tab) eval(expression string, v any) {
	p.t.Helper()
	var raw json.RawMessage
	if v == nil {
		expression = "(async () => { await (" + expression + "); return null; })()"
	}
	p.run(chromedp.Evaluate(expression, &raw, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
	if v == nil {
		return
	}
	if err := json.Unmarshal(raw, v); err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
}

func (p *tab) until(expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var done bool
		p.eval("Boolean("+expression+")", &done)
		if done {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("not within %s: %s; the page says: %.1500s", patience, expression, p.dump())
		}
	}
}

func (p *tab) says(selector, words string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, words))
}

func (p *tab) text(selector string) (text string) {
	p.t.Helper()
	p.eval(fmt.Sprintf(`document.querySelector(%q)?.textContent ?? ''`, selector), &text)
	return text
}

func (p *tab) visible(selector string) {
	p.t.Helper()
	p.run(chromedp.WaitVisible(selector, chromedp.ByQuery))
}

func (p *tab) size(width, height int64) {
	p.t.Helper()
	p.run(chromedp.EmulateViewport(width, height))
}

// theme sets the media features: scheme is "light" or "dark", and motion "reduce" or "no-preference".
func (p *tab) theme(scheme, motion string) {
	p.t.Helper()
	p.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
	}))
}

// axe fails the test on a violation of WCAG 2.2 AA, in the light and in the dark theme.
func (p *tab) axe() {
	p.t.Helper()
	source, err := axeSource()
	if err != nil {
		p.t.Fatal(err)
	}
	p.eval("(() => {"+source+"\n})()", nil)
	for _, scheme := range []string{"light", "dark"} {
		p.theme(scheme, "reduce")
		var found []struct {
			ID    string `json:"id"`
			Nodes []struct {
				HTML    string `json:"html"`
				Summary string `json:"failureSummary"`
			} `json:"nodes"`
		}
		p.eval(`window.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'], resultTypes: ['violations']}).then((r) => r.violations)`, &found)
		for _, f := range found {
			for _, n := range f.Nodes {
				p.t.Errorf("axe, %s: %s: %.200s: %s", scheme, f.ID, n.HTML, strings.ReplaceAll(n.Summary, "\n", " "))
			}
		}
		var passed int
		p.eval(`window.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}).then((r) => r.passes.length)`, &passed)
		if passed == 0 {
			p.t.Errorf("axe, %s: no rule has passed, so none was checked", scheme)
		}
		p.t.Logf("axe, %s: %d findings, %d rules passed", scheme, len(found), passed)
	}
	p.theme("light", "no-preference")
}

// fits fails the test if the page scrolls horizontally at any width from 320 to 2,560 px.
func (p *tab) fits() {
	p.t.Helper()
	for _, width := range []int64{320, 390, 768, 1280, 1920, 2560} {
		p.size(width, 900)
		var over int
		p.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &over)
		if over > 0 {
			p.t.Errorf("at %d px the page is %d px wider than the window", width, over)
		}
	}
	p.size(1280, 800)
}
