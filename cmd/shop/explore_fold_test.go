package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/tier"

	"github.com/oversell/oversell/internal/explore"
)

// wideShop writes a file for testdata/wide/shop.py, whose buyers send 98 commands each. mode names
// further statements of a purchase.
func wideShop(t *testing.T, mode string) string {
	t.Helper()
	appCase{needs: []string{"python3"}}.need(t)
	return appFile(t, fmt.Sprintf(`name: wide
run: /usr/bin/python3 -u %s/shop.py '%s'
local: true
postgres: 127.0.0.1:5432
schema: %[1]s/schema.sql
buyer: POST http://127.0.0.1:8080/buy
reset: { sql: [ 'UPDATE stock_level SET "stockAllocated" = 0', DELETE FROM order_line ] }
never: [ SELECT count(*) FROM order_line HAVING count(*) > 1 ]
watch: SELECT "stockAllocated" AS allocated, (SELECT count(*) FROM order_line) AS orders FROM stock_level
`, absolute(t, "testdata/wide"), mode))
}

// wideReplay is the schedule in which buyer 2 buys after buyer 1 has read the stock, and before it
// writes. more is the number of further statements between the two.
func wideReplay(more int) string {
	return fmt.Sprintf("v1:wide:b2:s1:1*65.2*%d.1*%d", 98+more, 33+more)
}

// leftOut matches the line that counts the commands which are not shown.
var leftOut = regexp.MustCompile(`left out: (\d+) commands`)

// TestAppFold: of two buyers with 98 commands each, people see what has to do with the race, with short
// statements. --verbose and JSON have everything.
func TestAppFold(t *testing.T) {
	tier.Soak(t, "starts programs and servers; internal/explore/fold shortens a witness")
	t.Parallel()
	file := wideShop(t, "")
	dir := t.TempDir()
	page, data := filepath.Join(dir, "witness.html"), filepath.Join(dir, "witness.json")
	code, text, stderr := exploreApp(t, file, "--replay", wideReplay(0), "--report", page, "--report", data)
	if code != exitBroken {
		t.Fatalf("exit %d: %s%s", code, text, stderr)
	}
	plain := cellText(text)
	for _, want := range []string{
		`│ 1-65 │ ... 43 more commands BEGIN -> ok SELECT id, name, value FROM tax_rate WHERE id = 1 -> id=1 name=rate1 value=1 ... 19 more commands SELECT ... FROM stock_level JOIN stock_location WHERE stock_level.id = 5 LIMIT 1 -> stockAllocated=0 │`,
		"UPDATE stock_level SET stockAllocated = 1, updatedAt = CURRENT_TIMESTAMP WHERE id IN (5) -> 1 changed",
		"INSERT INTO order_line(quantity, stockLevelId, ...) VALUES (1, 5, ...) RETURNING id, createdAt",
		"left out: 184 commands (92 of buyer 1, 92 of buyer 2) on tables and keys that neither the broken rule nor another buyer's writes touch; --verbose shows them",
	} {
		if !strings.Contains(plain, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if lines := strings.Count(text, "\n"); lines > 60 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "SELECT ... FROM stock_level") || strings.Contains(string(html), "FROM translation") || !leftOut.Match(html) {
		t.Errorf("%v\n%s", err, html)
	}
	var w explore.Witness
	if all, err := os.ReadFile(data); err != nil || json.Unmarshal(all, &w) != nil || len(w.Steps) != 196 || !strings.HasPrefix(w.Steps[64].Command, `SELECT "StockLevel"."id" AS "StockLevel_id", `) || w.Schedule != wideReplay(0) {
		t.Errorf("%v: %d steps\n%s", err, len(w.Steps), all)
	}
	code, text, stderr = exploreApp(t, file, "--replay", wideReplay(0), "--verbose")
	plain = cellText(text)
	if code != exitBroken || leftOut.MatchString(text) || strings.Count(plain, "SELECT text FROM translation WHERE id =") != 60 || !strings.Contains(plain, `"StockLevel"."stockAllocated" AS "StockLevel_stockAllocated" FROM "stock_level" "StockLevel"`) || !strings.Contains(plain, "StockLevel_stockOnHand=1 StockLevel_stockAllocated=0") {
		t.Errorf("exit %d: %s%s", code, text, stderr)
	}
}

// cellText joins the lines of each cell of a table, and each run of spaces.
func cellText(table string) string {
	var rows, cells []string
	flush := func() {
		if cells != nil {
			rows = append(rows, "│"+strings.Join(cells, "│")+"│")
		}
		cells = nil
	}
	for line := range strings.Lines(table) {
		parts := strings.Split(strings.Trim(line, "│\n"), "│")
		if len(parts) < 3 || strings.TrimSpace(parts[0]) != "" {
			flush()
		}
		if len(parts) < 3 {
			rows = append(rows, line)
			continue
		}
		if cells == nil {
			cells = make([]string, len(parts))
		}
		for i := range min(len(parts), len(cells)) {
			cells[i] += parts[i]
		}
	}
	flush()
	return strings.Join(strings.Fields(strings.Join(rows, "\n")), " ")
}

// TestAppFoldDoubts: a statement that may touch more than it names is shown. If it may write, so are the
// other buyer's commands.
func TestAppFoldDoubts(t *testing.T) {
	tier.Soak(t, "starts programs and servers; internal/explore/fold shortens a witness")
	t.Parallel()
	for _, c := range []struct {
		mode, says string
		left       string // number of commands that are left out
	}{
		{"lock", "SELECT pg_advisory_xact_lock_shared(7)", "184"},
		{"view", "SELECT free FROM free_stock", "184"},
		{"key", "DELETE FROM stock_location WHERE id = 9", "184"},
		{"function", "SELECT hidden_read()", ""},
		{"procedure", "CALL hidden_write()", ""},
		{"do", "DO $$ BEGIN PERFORM 1; END $$", ""},
		{"trigger", "UPDATE tax_rate SET value = 2 WHERE id = 1", ""},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			if c.mode != "procedure" && c.mode != "view" {
				tier.Soak(t, "internal/explore/fold decides the same without a server")
			}
			code, text, stderr := exploreApp(t, wideShop(t, c.mode), "--replay", wideReplay(1))
			left := ""
			if found := leftOut.FindStringSubmatch(text); found != nil {
				left = found[1]
			}
			if code != exitBroken || left != c.left || !strings.Contains(cellText(text), c.says) {
				t.Errorf("exit %d, left out %q, want %q and %q:\n%s%s", code, left, c.left, c.says, text, stderr)
			}
		})
	}
}
