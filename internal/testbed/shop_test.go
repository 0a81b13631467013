package testbed

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// echoShop is the environment variable that makes this test program a shop. The shop writes each command that
// it receives.
const echoShop = "TESTBED_TEST_SHOP"

func TestMain(m *testing.M) {
	addr := os.Getenv(echoShop)
	if addr == "" {
		os.Exit(m.Run())
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("%shttp://%s\n%s\n", localserver.Listening, l.Addr(), os.Getenv("SHOP_DB_URL"))
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println(lines.Text())
		}
	}()
	panic(http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
}

func echo(addr string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{echoShop + "=" + addr}
	return cmd
}

// TestShop: a shop can be killed, frozen and restarted, knows its servers, and accepts commands.
func TestShop(t *testing.T) {
	ctx := t.Context()
	said := make(chan string, 10)
	shop, err := StartShop(ctx, localservertest.Group(t), engine.Config{DB: "the database"}, echo, func(line []byte) { said <- strings.TrimSpace(string(line)) })
	require.NoError(t, err)
	hears := func(want string) {
		t.Helper()
		select {
		case got := <-said:
			expect.Equal(t, got, want, "the shop")
		case <-time.After(10 * time.Second):
			t.Fatalf("the shop did not write %q", want)
		}
	}
	do := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	hears("the database")
	do(shop.Tell("go ann"))
	hears("go ann")
	if !shop.Answers(ctx, 10*time.Second) || !shop.Ready(ctx, 10*time.Second) || shop.Ended() {
		t.Error("a shop that serves does not answer")
	}
	do(shop.Freeze())
	if shop.Answers(ctx, 300*time.Millisecond) {
		t.Error("a frozen shop answers")
	}
	do(shop.Thaw())
	if !shop.Answers(ctx, 10*time.Second) {
		t.Error("it does not answer when it runs on")
	}
	do(shop.Kill())
	if !shop.Ended() || shop.Answers(ctx, time.Second) || shop.Ready(ctx, 50*time.Millisecond) {
		t.Error("it answers after it was killed")
	}
	before := shop.URL()
	do(shop.StartAgain(ctx))
	hears("the database")
	if shop.URL() != before || !shop.Answers(ctx, 10*time.Second) {
		t.Errorf("it is started again at %s, and was at %s", shop.URL(), before)
	}
	do(shop.Tell("go bob"))
	hears("go bob")
	shop.Discard()
	if err := shop.Tell("go ann"); err == nil || !shop.Ended() {
		t.Errorf("a discarded shop takes commands: %v", err)
	}
}

// TestShopFails: a process that ends before it reports its address is an error with its output.
func TestShopFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	shop, err := StartShop(t.Context(), localservertest.Group(t), engine.Config{}, func(string) *exec.Cmd { return echo(taken.Addr().String()) }, nil)
	if shop != nil || err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("%v, want that the port is taken", err)
	}
}

// TestCommand: unset flags are omitted, except the sold-out check and admission control.
func TestCommand(t *testing.T) {
	tier.Test(t, "the other tests here need servers, and make quick links none of them")
	t.Parallel()
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Command{LogLevel: "error"}, "serve --addr a:1 --log-level error --sold-out-check=false --admission off"},
		{
			Command{LogLevel: "warn", Wait: time.Second, Conns: 4, Failpoints: true, SoldOutCheck: true, Admission: true},
			"serve --addr a:1 --log-level warn --sold-out-check=true --admission adaptive --wait 1s --db-conns 4 --failpoints",
		},
	} {
		expect.DeepEqual(t, c.command.At("a:1").Args[1:], strings.Fields(c.want))
	}
}
