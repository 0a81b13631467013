package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestServedGame: the served program plays in a child process. shop explore runs the played
// schedule again, and no child is left when the shop has ended.
func TestServedGame(t *testing.T) {
	t.Parallel()
	serve := shoptest.Raced(t, "serve", "--addr", "127.0.0.1:0", "--log-level", "error")
	base := shoptest.Serve(t, serve)
	if r := webtest.Call(t, http.MethodGet, base+"/play", "", nil); r.Status != http.StatusOK || !bytes.Contains(r.Body, []byte("/play/app.js")) {
		t.Errorf("the page: %d %.200s", r.Status, r.Body)
	}
	type game struct {
		ID       string        `json:"id"`
		Position play.Position `json:"position"`
		Won      *struct{}     `json:"won"`
	}
	g := webtest.Decode[game](t, webtest.Call(t, http.MethodPost, base+"/play/games", `{"level":"sell-twice"}`, asJSON))
	if g.ID == "" {
		t.Fatal("no game")
	}
	children := childrenOf(t, serve.Process.Pid)
	if len(children) == 0 {
		t.Error("the game is no process of its own")
	}
	for _, token := range strings.Fields("1 1 2 2 2 2 2 1 1 1") {
		g = webtest.Decode[game](t, webtest.Call(t, http.MethodPost, base+"/play/games/"+g.ID+"/moves", fmt.Sprintf(`{"token":%q}`, token), asJSON))
	}
	if g.Won == nil || g.Position.End == nil {
		t.Fatalf("the level is not won: %+v", g)
	}
	again, found := strings.CutPrefix(g.Position.End.Replay, "shop ")
	if !found {
		t.Fatal(g.Position.End.Replay)
	}
	code, stdout, stderr := shoptest.RunRaced(t, strings.Fields(again)...)
	if code != exitBroken || !strings.Contains(stdout, string(g.Position.End.Verdict)+": "+g.Position.End.Why) {
		t.Errorf("run again: exit %d, %s%s", code, stdout, stderr)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("the shop ended with %v", err)
	}
	for _, child := range children {
		webtest.Eventually(t, fmt.Sprintf("process %d ends", child), func() bool {
			p, err := os.FindProcess(child)
			return err != nil || p.Signal(syscall.Signal(0)) != nil
		})
	}
}

// childrenOf returns the game processes of a parent.
func childrenOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("no /proc to look at: on this system the children are not found")
	}
	for _, file := range files {
		command, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(command, []byte("\x00"+playChild+"\x00")) {
			continue // it has ended, or is another process
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		_, fields, named := strings.Cut(string(stat), ") ")
		var state string
		var pid, of int
		if _, scanned := fmt.Sscan(fields, &state, &of); err != nil || !named || scanned != nil || of != parent {
			continue
		}
		if _, err := fmt.Sscan(string(stat), &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
