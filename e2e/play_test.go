package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// level opens a level by its address, like a link in the workshop's notes.
func (p *tab) level(name string) {
	p.t.Helper()
	p.go_("/play")
	p.until(`document.querySelectorAll('#levels li').length >= 16`)
	p.eval(fmt.Sprintf(`history.replaceState(null, '', %q)`, "/play#"+name), nil)
	p.reload()
	p.visible("#game")
	p.until(`document.querySelectorAll('#table button:not(:disabled)').length > 0`)
}

// TestPlayMouse wins the first level by clicks: each buyer reads before either writes.
func TestPlayMouse(t *testing.T) {
	s := startShop(t)
	p := open(t, s, "/play")
	p.until(`document.querySelectorAll('#levels li').length >= 16`)
	p.axe()
	p.fits()
	p.level("sell-twice")
	p.click(`.buyer.b1 .command:not(:disabled)`)
	p.until(`document.querySelectorAll('#board tbody tr td.n').length >= 1 && !document.body.hasAttribute('aria-busy')`)
	p.axe()
	p.fits()
	p.click(`[data-do=undo]`)
	p.until(`document.querySelector('[data-do=undo]').disabled && !document.body.hasAttribute('aria-busy')`)
	for _, buyer := range []string{"b1", "b2"} { // both read before one writes
		p.click(`.buyer.` + buyer + ` .command:not(:disabled)`)
		p.until(`!document.body.hasAttribute('aria-busy')`)
	}
	for range 20 {
		var over bool
		p.eval(`!document.querySelector('#end').hidden`, &over)
		if over {
			break
		}
		p.click(`#buyers .command:not(:disabled)`)
		p.until(`!document.body.hasAttribute('aria-busy')`)
	}
	p.says("#end", "Level won")
	p.says("#end", "oversold")
	p.axe()
}

// TestPlayKeyboard wins the same level by keyboard, with a reload half-way.
func TestPlayKeyboard(t *testing.T) {
	s := startShop(t)
	p := open(t, s, "/play")
	p.level("sell-twice")
	for _, key := range []string{"1", "2"} {
		p.key(key)
		p.until(`!document.body.hasAttribute('aria-busy')`)
	}
	p.until(`document.querySelectorAll('#board tbody tr').length === 2`)
	p.reload()
	p.until(`document.querySelectorAll('#board tbody tr').length === 2`)
	for range 20 {
		var over bool
		p.eval(`!document.querySelector('#end').hidden`, &over)
		if over {
			break
		}
		p.key("1")
		p.until(`!document.body.hasAttribute('aria-busy')`)
		p.key("2")
		p.until(`!document.body.hasAttribute('aria-busy')`)
	}
	p.says("#end", "Level won")
	p.key("r")
	p.until(`document.querySelector('#end').hidden && !document.body.hasAttribute('aria-busy')`)
	for _, key := range []string{"h", "h", "h"} {
		p.key(key)
		p.until(`!document.body.hasAttribute('aria-busy')`)
	}
	p.says("#advice", "Hint 3 of 3")
	p.key(kb.Enter) // the third hint moves the focus to the next step
	p.until(`document.querySelectorAll('#board tbody tr td.n').length >= 1`)
	p.key("l")
	p.visible("#setup")
}

// TestPlayNoLevel: for an unknown level, the page shows a message and the list of levels. A game under
// way continues.
func TestPlayNoLevel(t *testing.T) {
	s := startShop(t)
	p := open(t, s, "/play#nosuch")
	p.says("#trouble", `There is no level called "nosuch". These are the levels.`)
	p.until(`document.querySelectorAll('#levels li').length >= 16`)
	p.visible("#setup")
	p.axe()
	p.level("sell-twice")
	p.eval(`location.hash = 'neither'`, nil)
	p.says("#trouble", `There is no level called "neither". Your game continues.`)
	p.visible("#game")
}

// TestPlayRestart: if the shop restarts, the page says that its game is lost and begins it again by
// itself.
func TestPlayRestart(t *testing.T) {
	s := startShop(t)
	p := open(t, s, "/play")
	p.level("sell-twice")
	again := func() {
		p.click("#again")
		p.visible("#game")
		p.until(`!document.body.hasAttribute('aria-busy') && document.querySelector('#trouble').hidden`)
		p.click(`.buyer.b1 .command:not(:disabled)`)
		p.until(`document.querySelectorAll('#board tbody tr td.n').length >= 1 && !document.body.hasAttribute('aria-busy')`)
	}
	if err := s.cmd.Process.Kill(); err != nil { // without a shutdown that the page could notice
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // the error is that of a killed process
	p.says("#trouble", "does not answer")
	p.visible("#game")
	s.start(s.url[len("http://"):])
	p.says("#trouble", "there is no such game")
	p.visible("#setup")
	p.axe()
	again()
	s.restart()
	p.says("#trouble", "the shop is stopping")
	again()
}
