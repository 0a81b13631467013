package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// wideShop writes a file for testdata/wide/shop.py. There, each buyer sends 98 commands.
func wideShop(t *testing.T) string {
	t.Helper()
	shoptest.Needs(t, "python3")
	return appFile(t, fmt.Sprintf(`name: wide
run: /usr/bin/python3 -u %s/shop.py
local: true
postgres: 127.0.0.1:5432
schema: %[1]s/schema.sql
buyer: POST http://127.0.0.1:8080/buy
reset: { sql: [ 'UPDATE stock_level SET "stockAllocated" = 0', DELETE FROM order_line ] }
never: [ SELECT count(*) FROM order_line HAVING count(*) > 1 ]
watch: SELECT "stockAllocated" AS allocated, (SELECT count(*) FROM order_line) AS orders FROM stock_level
`, absolute(t, "testdata/wide")))
}

// wideReplay is a schedule in which buyer 2 buys between buyer 1's read of the stock and its write.
const wideReplay = "v1:wide:b2:s1:1*65.2*98.1*33"

// leftOut matches the line with the number of commands that are not shown.
var leftOut = regexp.MustCompile(`left out: (\d+) commands`)

// TestAppFold: if two buyers send 98 commands each, the text shows only those that matter for the race,
// with short statements. --verbose and JSON contain all commands.
func TestAppFold(t *testing.T) {
	tier.Soak(t, "starts programs and servers; internal/explore/fold tests how steps are left out")
	t.Parallel()
	file := wideShop(t)
	dir := t.TempDir()
	page, data := filepath.Join(dir, "witness.html"), filepath.Join(dir, "witness.json")
	code, text, stderr := exploreApp(t, file, "--replay", wideReplay, "--report", page, "--report", data)
	if code != shoptest.Broken {
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
	if all, err := os.ReadFile(data); err != nil || json.Unmarshal(all, &w) != nil || len(w.Steps) != 196 || !strings.HasPrefix(w.Steps[64].Command, `SELECT "StockLevel"."id" AS "StockLevel_id", `) || w.Schedule != wideReplay {
		t.Errorf("%v: %d steps\n%s", err, len(w.Steps), all)
	}
	code, text, stderr = exploreApp(t, file, "--replay", wideReplay, "--verbose")
	plain = cellText(text)
	if code != shoptest.Broken || leftOut.MatchString(text) || strings.Count(plain, "SELECT text FROM translation WHERE id =") != 60 || !strings.Contains(plain, `"StockLevel"."stockAllocated" AS "StockLevel_stockAllocated" FROM "stock_level" "StockLevel"`) || !strings.Contains(plain, "StockLevel_stockOnHand=1 StockLevel_stockAllocated=0") {
		t.Errorf("exit %d: %s%s", code, text, stderr)
	}
}

// cellText joins the lines of each cell of a table, and reduces each run of spaces to one space.
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
