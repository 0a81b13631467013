package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestSoldOutAhead: who comes too late is told so although somebody holds the lock that
// the strategy would wait for, and is counted as any other refusal. Without the check it
// waits.
func TestSoldOutAhead(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		if e.Name == engine.Embedded {
			t.Skip("nobody but the shop holds a lock there")
		}
		for _, checked := range []bool{true, false} {
			t.Run(fmt.Sprintf("check=%v", checked), func(t *testing.T) {
				base := startServe(t, append(serveArgs(e), "--wait", "1s", fmt.Sprintf("--%s=%v", soldOutCheck, checked))...)
				restock(t, base, "apple", 1)
				buy := func(query string, header http.Header) response {
					return call(t, http.MethodPost, base+"/product/buy?lock=for-update&purchaser=ann"+query, "", header)
				}
				key := http.Header{"Idempotency-Key": {"a-key"}}
				sold := buy("", key)
				if sold.status != http.StatusOK {
					t.Fatalf("%d %s", sold.status, sold.body)
				}
				wantProblem(t, buy("", nil), http.StatusConflict, "sold_out")
				hold := e.DB.Begin()
				if err := hold.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error; err != nil {
					t.Fatal(err)
				}
				late := buy("", nil)
				another := buy("", http.Header{"Idempotency-Key": {"another"}})
				if again := buy("", key); again.status != http.StatusOK || string(again.body) != string(sold.body) {
					t.Errorf("the retry: %d %s, want %s", again.status, again.body, sold.body)
				}
				if err := hold.Rollback().Error; err != nil {
					t.Fatal(err)
				}
				if !checked {
					wantProblem(t, late, http.StatusServiceUnavailable, "busy")
					return
				}
				if p := wantProblem(t, late, http.StatusConflict, "sold_out"); p.Detail != "sold out: 0 left" || late.header.Get("Shop-Buy-Span") == "" {
					t.Errorf("%+v, %v", p, late.header)
				}
				wantProblem(t, another, http.StatusConflict, "sold_out")
				metrics := string(call(t, http.MethodGet, base+"/metrics", "", nil).body)
				if want := `shop_buys_total{outcome="sold_out",strategy="for-update"} 3`; !strings.Contains(metrics, want) {
					t.Errorf("/metrics lacks %s", want)
				}
				restock(t, base, "apple", 5)
				wantProblem(t, buy("&amount=6", nil), http.StatusConflict, "sold_out")
				if r := buy("&amount=5", nil); r.status != http.StatusOK {
					t.Errorf("after a restock: %d %s", r.status, r.body)
				}
			})
		}
	})
}

// TestSoldOutRestocks: each strategy keeps its promise behind the check, whose crowds it
// meets in use: sold out, restocked, and sold out again at each of two processes.
func TestSoldOutRestocks(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--engine", "embedded"}, {"--engine", "local", "--processes", "2"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			if len(args) > 2 {
				localservertest.SkipShort(t)
			}
			args = append([]string{"rush", "--" + soldOutCheck, "--restocks", "4", "--expect", "--json", "--wait", "1m", "--lease", "2m"}, args...)
			code, stdout, stderr := exitOfCommand(t, plainCommand(t, args...))
			var report rush.Report
			if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
				t.Fatalf("exit %d, %v: %s %s", code, err, stderr, stdout)
			}
			for _, r := range report.Results {
				checkResult(t, r)
			}
		})
	}
}

// TestSoldOutUnderFaults: behind the check the promises under faults are kept, too. A cell
// that holds ends with a restock and a crowd at each shop.
func TestSoldOutUnderFaults(t *testing.T) {
	localservertest.SkipShort(t)
	t.Parallel()
	var stdout bytes.Buffer
	var stderr syncBuffer // of two shops
	o := verifyOptions{
		strategies: []string{"for-update", "conditional", "redis-decr", "redis-lua"}, engine: engine.Local, lanes: 2, repeat: 1, history: t.TempDir(),
		launch: func(times fault.Times) *exec.Cmd {
			cmd := plainCommand(t, "serve", "--failpoints", "--addr", "127.0.0.1:0", "--log-level", "error",
				"--wait", times.Wait.String(), "--lease", times.Lease.String(), "--"+soldOutCheck)
			cmd.Stderr = &stderr
			return cmd
		},
		output: verifyOutput{old: [4]string{"-"}},
	}
	for _, f := range []promise.Condition{promise.Rush, promise.Units, promise.Duplicates, promise.Crash, promise.ClientGone, promise.DBKill} {
		o.faults = append(o.faults, string(f))
	}
	err := playVerify(t, &o, &stdout, &stderr)
	var report verify.Report
	if failed := json.Unmarshal(stdout.Bytes(), &report); failed != nil || err != nil || len(report.Cells) < 20 {
		t.Errorf("%d cells, %v, %v; %s", len(report.Cells), err, failed, stderr.String())
	}
	for _, cell := range report.Cells {
		if t.Logf("%s under %s: %s, %s", cell.Strategy, cell.Fault, cell.Verdict, cell.Evidence); !cell.OK {
			t.Errorf("%+v", cell)
		}
	}
}

// TestRestockedUnderCheck: buyers come without end while a product is sold out and
// restocked: nobody who came after a restock was answered is refused while there are
// units, and every unit is sold.
func TestRestockedUnderCheck(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		first, second := startServe(t, serveArgs(e)...), startServe(t, serveArgs(e)...) // two processes' worth of memory
		for _, strategy := range []string{"conditional", "redis-decr", "redis-lua"} {
			testRestockedUnderCheck(t, first, second, strategy)
		}
	})
}

func testRestockedUnderCheck(t *testing.T, base, other, strategy string) {
	product := "checked-" + strategy
	url := "/product/buy?product=" + product + "&lock=" + strategy
	restock(t, base, product, 1)
	stop := make(chan struct{})
	var crowd sync.WaitGroup
	for range 8 { // they keep a read under way all the time
		crowd.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					call(t, http.MethodGet, other+url+"&amount=1000", "", nil)
				}
			}
		})
	}
	for range 20 {
		restock(t, base, product, 3)
		for range 3 {
			r := call(t, http.MethodGet, other+url, "", nil)
			if r.status != http.StatusOK {
				t.Errorf("%s: %d %s after a restock, want a sale", strategy, r.status, r.body)
			}
		}
		wantProblem(t, call(t, http.MethodGet, other+url, "", nil), http.StatusConflict, "sold_out")
	}
	close(stop)
	crowd.Wait()
	if got := books(t, base, product); got.Leftover != 0 || got.Drift != 0 || got.Records != 3 {
		t.Errorf("%s: books %+v", strategy, got)
	}
}

// TestUncheckable: on a database that cannot read so there is no check; who asks for it
// is told why in one line.
func TestUncheckable(t *testing.T) {
	e := enginetest.Local(t)
	args := serveArgs(e)
	variable := "transaction_isolation"
	if strings.Contains(e.Server, "MariaDB") { // before 11.1
		variable = "tx_isolation"
	}
	args[1] += "?" + variable + "=%27READ-UNCOMMITTED%27"
	for _, command := range [][]string{
		{"serve", "--addr", "127.0.0.1:0", "--" + soldOutCheck},
		{"rush", "--strategy", "none", "--" + soldOutCheck},
	} {
		code, stdout, stderr := exitCode(t, append(command, args...)...)
		if code != exitHarness || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, soldOutCheck) || !strings.Contains(stderr, "READ UNCOMMITTED") {
			t.Errorf("%v: exit %d, %q %q; want %d and one line", command, code, stdout, stderr, exitHarness)
		}
	}
	base := startServe(t, args...) // by itself it is off
	if r := call(t, http.MethodGet, base+"/product/buy", "", nil); r.status != http.StatusOK {
		t.Errorf("%d %s", r.status, r.body)
	}
}
