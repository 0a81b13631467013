package engine_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/oversell/oversell/internal/engine"
)

func TestParseDetours(t *testing.T) {
	for _, text := range []string{"", "127.0.0.1:1=127.0.0.1:2", "a:1=b:2,c:3=d:4"} {
		d, err := engine.ParseDetours(text)
		if err != nil || d.String() != text {
			t.Errorf("%q: %q, %v", text, d, err)
		}
	}
	for text, says := range map[string]string{
		"a:1": "not host:port=host:port", "a=b": "not host:port=host:port", "a:1=b:2,": "not host:port=host:port", "a:=b:1": "not host:port=host:port",
		"a:1=b:2,a:1=c:3": "a:1 occurs twice",
	} {
		if _, err := engine.ParseDetours(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want something with %q", text, err, says)
		}
	}
}

// TestDetour: both drivers connect to the detour and not to the given address, on which no server
// listens.
func TestDetour(t *testing.T) {
	redis := miniredis.RunT(t)
	database, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	called := make(chan struct{}, 1)
	go func() {
		if conn, err := database.Accept(); err == nil {
			called <- struct{}{}
			_ = conn.Close()
		}
	}()
	detours := engine.Detours{"127.0.0.1:1": redis.Addr(), "127.0.0.1:2": database.Addr().String()}
	e, err := engine.Open(t.Context(), engine.Config{
		DB: "sqlite://" + t.TempDir() + "/shop.db", Redis: "redis://127.0.0.1:1", Redlock: []string{"redis://127.0.0.1:1"},
		Wait: time.Second, Conns: 4, Detours: detours,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	_, err = engine.Open(t.Context(), engine.Config{DB: "mysql://u:p@127.0.0.1:2/shop", Wait: time.Second, Conns: 4, Detours: detours})
	if err == nil {
		t.Error("a listener that says nothing was taken for a database")
	}
	select {
	case <-called:
	case <-time.After(10 * time.Second):
		t.Error("the driver of MySQL did not take the detour")
	}
}
