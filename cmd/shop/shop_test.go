package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore/process"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

type response = webtest.Response

const patience = webtest.Patience

// serveArgs returns the flags of a shop on the engine's servers.
func serveArgs(e *engine.Engine) []string {
	return []string{
		"--db", e.URLs.DB, "--redis", e.URLs.Redis, "--redlock", strings.Join(e.URLs.Redlock, ","),
		"--zookeeper", strings.Join(e.URLs.Zookeeper, ","), "--etcd", strings.Join(e.URLs.Etcd, ","),
	}
}

// startServe runs `shop serve` in this process on a free port until the test ends, and checks that
// it exits with 0.
func startServe(t *testing.T, args ...string) (url string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var log shoptest.Buffer
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), in, &log)
		_ = in.Close()
	}()
	t.Cleanup(func() {
		stop()
		if code := <-exit; code != 0 {
			t.Errorf("shop serve exited with %d: %s", code, log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("shop serve said nothing: %s", log.String())
	}
	go io.Copy(io.Discard, out)
	return strings.TrimPrefix(strings.TrimSpace(line), localserver.Listening)
}

// unhurried is a flag that keeps buyers from giving up on a slow machine. A burst proves nothing if
// buyers give up.
const unhurried = "--wait=1m"

// asShop makes this test program act as the shop: for the child processes of a shop in this process, and under make
// quick for every command, since the test program has the same code.
const asShop = "SHOP_TEST_AS_SHOP"

func TestMain(m *testing.M) {
	process.Keep()
	if os.Getenv(asShop) != "" {
		main()
	}
	silenceLibraries()
	flag.Parse()
	err := os.Setenv(asShop, "1")
	if tier.Quick() {
		err = errors.Join(err, os.Setenv(shoptest.Variable, os.Args[0]))
	}
	if err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
