package host

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

// TestEnds: a game's process ends when the game is ended, after a long time without moves, when its
// page has gone for good, and when the shop dies.
func TestEnds(t *testing.T) {
	t.Run("ended", func(t *testing.T) {
		_, base, v, pid := begun(t, "child", nil)
		events := watch(t, base, v.ID)
		expect.Equal(t, call(t, http.MethodDelete, base+"/play/games/"+v.ID, "", nil).StatusCode, http.StatusNoContent)
		await(t, events, "event: ended")
		awaitGone(t, pid)
		refused(t, http.MethodGet, base+"/play/games/"+v.ID, "", http.StatusNotFound, "it has ended")
	})
	t.Run("idle", func(t *testing.T) {
		clock := &hands{}
		_, base, v, pid := begun(t, "child", clock)
		events := watch(t, base, v.ID)
		before := clock.due(Idle) // the move must start another ten minutes
		call(t, http.MethodPost, base+"/play/games/"+v.ID+"/moves", `{"token":"1"}`, nil)
		if len(before) != 1 {
			t.Fatalf("%d timers", len(before))
		}
		clock.strike(t, Idle)
		await(t, events, "event: ended")
		await(t, events, `data: {"why":"no move for 10 minutes`)
		awaitGone(t, pid)
	})
	t.Run("page gone", func(t *testing.T) {
		clock := &hands{}
		h, base, v, pid := begun(t, "child", clock)
		_, leave := watchUntil(t, base, v.ID)
		leave()
		h.awaitPages(t, v.ID, 0)
		_, leave = watchUntil(t, base, v.ID) // as after a reload
		if n := len(clock.due(Grace)); n != 0 {
			t.Fatalf("%d timers run with a page open", n)
		}
		leave()
		h.awaitPages(t, v.ID, 0)
		clock.strike(t, Grace)
		awaitGone(t, pid)
	})
	t.Run("page never there", func(t *testing.T) {
		clock := &hands{}
		_, _, _, pid := begun(t, "light", clock)
		clock.strike(t, Grace)
		awaitGone(t, pid)
	})
	t.Run("not begun", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pid")
		h := &Host{Command: as("silent", pidFile+"="+file)}
		base := serve(t, h)
		answered := make(chan int, 1)
		go func() {
			answer, err := http.Post(base+"/play/games", "application/json", strings.NewReader(`{"strategy":"none"}`))
			if err != nil {
				answered <- 0
				return
			}
			answer.Body.Close()
			answered <- answer.StatusCode
		}()
		pid := 0
		require.Eventually(t, "a child", func() bool {
			text, _ := os.ReadFile(file)
			pid, _ = strconv.Atoi(string(text)) // 0: not written yet
			return pid != 0
		})
		h.Close()
		if lives(pid) {
			t.Error("the shop is closed, and a child lives")
		}
		if status := <-answered; status < 500 {
			t.Errorf("the game that did not begin is answered %d", status)
		}
	})
	t.Run("parent dies", func(t *testing.T) {
		cmd, _ := as("parent")()
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || !lives(pid) {
			t.Fatalf("no game: %q %v", line, err)
		}
		require.NoError(t, cmd.Process.Kill())
		awaitGone(t, pid)
		_ = cmd.Wait() // the error is that of a killed process
	})
}

// begun begins a game on a new host and returns its process. The host uses the given clock unless
// that is nil.
func begun(t *testing.T, role string, clock *hands) (h *Host, base string, v gameView, pid int) {
	t.Helper()
	h = &Host{Command: as(role)}
	if clock != nil {
		h.After = clock.after
	}
	base = serve(t, h)
	v = begin(t, base, `{"strategy":"none"}`)
	return h, base, v, h.pid(t, v.ID)
}

func (h *Host) awaitPages(t *testing.T, id string, n int) {
	t.Helper()
	g, err := h.find(id)
	require.NoError(t, err)
	require.Eventually(t, fmt.Sprint("pages: ", n), func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.pages) == n
	})
}

// TestBadChild: if a child panics or is another program, the error is one line, and the game is
// over.
func TestBadChild(t *testing.T) {
	base := serve(t, &Host{Command: as("panics")})
	v := begin(t, base, `{"strategy":"none"}`)
	events := watch(t, base, v.ID)
	refused(t, http.MethodPost, base+"/play/games/"+v.ID+"/moves", `{"token":"1"}`, http.StatusGone, "panic: this lock is broken")
	await(t, events, `data: {"why":"the game's process has ended: panic: this lock is broken`)
	refused(t, http.MethodGet, base+"/play/games/"+v.ID, "", http.StatusNotFound, "it has ended")

	base = serve(t, &Host{Command: as("babbles")})
	refused(t, http.MethodPost, base+"/play/games", `{"strategy":"none"}`, http.StatusInternalServerError, "did not begin: the game's process has ended: it wrote what is no answer")
	h := &Host{Command: as("chats"), Most: 1}
	base = serve(t, h)
	v = begin(t, base, `{"strategy":"none"}`)
	pid := h.pid(t, v.ID)
	refused(t, http.MethodPost, base+"/play/games/"+v.ID+"/moves", `{"token":"1"}`, http.StatusGone, "it wrote what is no answer")
	awaitGone(t, pid)
	begin(t, base, `{"strategy":"none"}`) // the ended game occupies no place
	base = serve(t, &Host{Command: func() (*exec.Cmd, error) { return exec.Command("/nosuch/program"), nil }})
	refused(t, http.MethodPost, base+"/play/games", `{"strategy":"none"}`, http.StatusInternalServerError, "start the game's process")
}
