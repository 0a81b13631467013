package lockstrategy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// openOn opens an engine on servers that already run.
func openOn(t *testing.T, db, redis string) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{DB: db, Redis: redis, Wait: enginetest.Wait, Conns: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// rush sends a burst of buyers and calls inject during it, times times, each time after n more
// acknowledged sales.
func (a *answers) rush(t *testing.T, stocked, times, n int, inject func() error, shops ...purchase.Strategy) {
	t.Helper()
	over := make(chan struct{})
	injected := 0
	var faults sync.WaitGroup
	faults.Go(func() {
		for range times {
			for range n {
				select {
				case <-a.sales:
				case <-over: // on a slow machine, most buyers were answered unknown
					return
				}
			}
			if a.acknowledged() < stocked {
				injected++
			}
			if err := inject(); err != nil {
				t.Error(err)
			}
		}
	})
	a.crowd(t, "buyer", 32, shops...)
	close(over)
	faults.Wait()
	if injected == 0 {
		t.Error("all was sold before anything happened: this test has shown nothing")
	}
}

func (a *answers) acknowledged() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.Sold)
}

type server interface {
	Kill() error
	Start() error
}

// outage kills a server. It restarts the server when a buyer has met the outage: with unknown if
// unknown is true, otherwise with any error.
func (a *answers) outage(s server, unknown bool) func() error {
	met := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		if unknown {
			return len(a.Unknown)
		}
		return a.trouble
	}
	return func() error {
		before := met()
		if err := s.Kill(); err != nil {
			return err
		}
		for deadline := time.Now().Add(soon); met() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return errors.Join(errors.New("no buyer has met the outage"), s.Start())
			}
		}
		return s.Start()
	}
}

// bothShops returns a shop with a short wait and one with a long wait.
func bothShops(e *engine.Engine) []purchase.Strategy {
	return []purchase.Strategy{
		purchase.NewIdempotent(newRedisLua(e, longWait), e.DB),
		purchase.NewIdempotent(newRedisLua(e, 300*time.Millisecond), e.DB),
	}
}

// TestRedisLuaRedisKilled: Redis with its append-only file is killed three times during a rush. No
// sale is lost and everything is sold.
func TestRedisLuaRedisKilled(t *testing.T) {
	server, err := localserver.StartDurableRedis(localservertest.Group(t))
	if err != nil {
		t.Fatal(err)
	}
	e := openOn(t, enginetest.Local(t).URLs.DB, server.URL())
	restock(t, e, "apple", 2000)
	answered := newAnswers()
	answered.rush(t, 2000, 3, 100, answered.outage(server, false), bothShops(e)...)
	answered.check(t, e, 0)
}

// TestRedisLuaDatabaseKilled is the same test with the database.
func TestRedisLuaDatabaseKilled(t *testing.T) {
	server, err := localserver.StartMySQL(localservertest.Group(t))
	if err != nil {
		t.Fatal(err)
	}
	e := openOn(t, server.URL(), enginetest.Local(t).URLs.Redis)
	restock(t, e, "apple", 2000)
	answered := newAnswers()
	answered.rush(t, 2000, 1, 100, answered.outage(server, true), bothShops(e)...)
	answered.check(t, e, 0)
}

// TestRedisLuaNotOnDisk: InnoDB shows a commit to others before it has flushed it. If another
// process has written a buyer's order, the buyer is answered only when the record survives a crash
// of the database.
func TestRedisLuaNotOnDisk(t *testing.T) {
	server := localservertest.MySQL(t)
	e := openOn(t, server.URL(), enginetest.Local(t).URLs.Redis)
	restock(t, e, "apple", 10)
	// These settings keep the mover's COMMIT off the disk.
	for _, set := range []string{"innodb_flush_log_at_timeout = 2700", "innodb_flush_log_at_trx_commit = 0"} {
		if err := e.DB.Exec("SET GLOBAL " + set).Error; err != nil {
			t.Fatal(err)
		}
	}
	here, elsewhere := newRedisLua(e, longWait), newRedisLua(e, longWait)
	o := apple("late", 1)
	o.IdempotencyKey = "late"
	entry, err := here.enter(t.Context(), o, time.Now())
	if err == nil {
		err = elsewhere.Drain(t.Context(), "apple")
	}
	if err == nil {
		err = e.DB.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1").Error
	}
	if err != nil {
		t.Fatal(err)
	}
	if a := <-here.Await(o, entry).Answer; a.Err != nil {
		t.Fatal(a.Err)
	}
	if err := errors.Join(server.Kill(), server.Start()); err != nil {
		t.Fatal(err)
	}
	var records int64
	eventually(t, "the database is back", func() bool {
		return e.DB.Model(&purchase.Record{}).Where("idempotency_key = ?", "late").Count(&records).Error == nil
	})
	if records != 1 {
		t.Errorf("the buyer was answered sold, and there are %d records", records)
	}
}

// TestRedisLuaForgets: Redis loses all data five times during a rush. Orders under way may be lost,
// and their buyers are answered unknown. The remaining units can be bought.
func TestRedisLuaForgets(t *testing.T) {
	server, err := localserver.StartRedis(localservertest.Group(t))
	if err != nil {
		t.Fatal(err)
	}
	e := openOn(t, enginetest.Local(t).URLs.DB, server.URL())
	restock(t, e, "apple", 600)
	answered := newAnswers()
	answered.rush(t, 600, 5, 50, func() error { return e.Redis.FlushAll(t.Context()).Err() }, bothShops(e)...)
	answered.crowd(t, "later", 4, bothShops(e)...)
	answered.check(t, e, 0)
}

// TestRedisLuaAndConditional: another strategy sells the same units at the same time.
func TestRedisLuaAndConditional(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 300)
	other := NewConditional(Deps{DB: e.DB, Settings: Settings{Wait: soon}, Now: time.Now})
	answered := newAnswers()
	answered.crowd(t, "buyer", 16, newRedisLua(e, soon), other)
	answered.check(t, e, 0)
	if len(answered.Unknown) > 0 {
		t.Errorf("told unknown, with nothing amiss: %v", answered.Unknown)
	}
}

// TestRedisLuaProcess is the burst of another process, which another test starts. It begins when
// its standard input ends.
func TestRedisLuaProcess(t *testing.T) {
	servers := strings.Fields(os.Getenv(processEnv))
	if len(servers) != 2 {
		return
	}
	e := openOn(t, servers[0], servers[1])
	fmt.Println("ready")
	if _, err := io.ReadAll(os.Stdin); err != nil {
		t.Fatal(err)
	}
	answered := newAnswers()
	answered.crowd(t, "child", 16, newRedisLua(e, soon))
	text, err := json.Marshal(answered)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(text))
}

// child is a shop in a separate process.
type child struct {
	*exec.Cmd
	lines *bufio.Reader
	begin func() error
}

func startChild(t *testing.T, e *engine.Engine) *child {
	t.Helper()
	c := &child{Cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRedisLuaProcess$")}
	c.Env = append(os.Environ(), processEnv+"="+e.URLs.DB+" "+e.URLs.Redis)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.begin = in.Close
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewReader(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	if line, err := c.lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return c
}

// TestRedisLuaTwoProcesses: two processes with a burst each sell exactly the stock.
func TestRedisLuaTwoProcesses(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 300)
	c := startChild(t, e)
	if err := c.begin(); err != nil {
		t.Fatal(err)
	}
	answered := newAnswers()
	answered.crowd(t, "parent", 16, newRedisLua(e, soon))
	there := newAnswers()
	line, err := c.lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, there)
	}
	if err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	t.Logf("%d sales in this process, %d in the other", len(answered.Sold), len(there.Sold))
	maps.Copy(answered.Sold, there.Sold)
	maps.Copy(answered.No, there.No)
	maps.Copy(answered.Unknown, there.Unknown)
	answered.check(t, e, 0)
	if len(answered.Sold) != 300 || len(answered.Unknown) != 0 {
		t.Errorf("%d sold of 300, %d unknown", len(answered.Sold), len(answered.Unknown))
	}
}

// TestRedisLuaCrash: a shop is killed after its orders are admitted and before they are written.
// The workers of two other shops write each order once.
func TestRedisLuaCrash(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 100)
	c := startChild(t, e)
	release := keepRow(t, e)
	if err := c.begin(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "16 orders", func() bool { return e.Redis.XLen(t.Context(), luaKeys.Stream("apple")).Val() == 16 })
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // "signal: killed" is expected
	release()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { newRedisLua(e, longWait).Work(ctx) })
	}
	eventually(t, "an empty stream", func() bool {
		return e.Redis.XLen(ctx, luaKeys.Stream("apple")).Val() == 0 && e.Redis.SCard(ctx, luaKeys.Products("apple")).Val() == 0
	})
	stop()
	workers.Wait()
	newAnswers().check(t, e, 100-16)
	mustHaveStock(t, e, 100-16)
}
