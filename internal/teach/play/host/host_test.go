package host

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/child"
	"github.com/oversell/oversell/internal/web/problem"
)

// role is the environment variable that makes this test binary act as another program, see
// TestMain.
const role = "OVERSELL_PLAY_ROLE"

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	switch os.Getenv(role) {
	case "child":
		explore.OneProcessor(false)
		if err := child.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	case "light": // answers without an engine
		answer(func(child.Request) child.Answer { return child.Answer{Position: &play.Position{}} })
	case "panics": // panics at a move
		answer(func(r child.Request) child.Answer {
			if r.Op == child.Move {
				panic("this lock is broken\nin two lines")
			}
			return child.Answer{Position: &play.Position{}}
		})
	case "babbles": // writes an invalid answer and goes on
		fmt.Println("hello")
		select {}
	case "chats": // at a move, writes additional output and goes on
		answer(func(r child.Request) child.Answer {
			if r.Op == child.Move {
				fmt.Println("hello")
			}
			return child.Answer{Position: &play.Position{}}
		})
	case "searches": // runs a proof until it is stopped; says at once that there is no hint
		answer(func(r child.Request) child.Answer {
			a := child.Answer{Position: &play.Position{}}
			switch r.Op {
			case child.Hint:
				a.Way = &play.Way{}
			case child.Prove:
				a.Proof = &play.Proof{}
				fmt.Println(`{"progress":{"runs":1}}`)
				_ = requests.Decode(&r) // waits for the Stop request
			}
			return a
		})
	case "silent": // says that it runs, and answers nothing
		if err := os.WriteFile(os.Getenv(pidFile), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
			panic(err)
		}
		select {}
	case "parent": // begins a game, prints its process, and waits to be killed
		h := &Host{Command: as("child")}
		g, err := h.create("", play.Config{Strategy: "none"}.Filled(), nil)
		if err != nil {
			panic(err)
		}
		fmt.Println(g.process.cmd.Process.Pid)
		select {}
	default:
		os.Exit(m.Run())
	}
}

// pidFile is the environment variable with the file for the process id of a silent child.
const pidFile = "OVERSELL_PLAY_PID"

var requests = json.NewDecoder(os.Stdin)

func answer(how func(child.Request) child.Answer) {
	out := json.NewEncoder(os.Stdout)
	for {
		var r child.Request
		if requests.Decode(&r) != nil {
			return
		}
		_ = out.Encode(how(r))
	}
}

// as returns a Host.Command that runs this test binary in a role, with more environment variables.
func as(what string, env ...string) func() (*exec.Cmd, error) {
	return func() (*exec.Cmd, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(append(os.Environ(), role+"="+what), env...)
		return cmd, nil
	}
}

// hands is a clock that the test controls.
type hands struct {
	mu     sync.Mutex
	timers map[int]timer
	next   int
}

type timer struct {
	d time.Duration
	f func()
}

func (c *hands) after(d time.Duration, f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timers == nil {
		c.timers = map[int]timer{}
	}
	c.next++
	n := c.next
	c.timers[n] = timer{d, f}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, n)
	}
}

// due removes and returns the running timers of this duration.
func (c *hands) due(d time.Duration) (all []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, t := range c.timers {
		if t.d == d {
			all = append(all, t.f)
			delete(c.timers, n)
		}
	}
	return all
}

// strike fires the running timers of this duration.
func (c *hands) strike(t *testing.T, d time.Duration) {
	t.Helper()
	all := c.due(d)
	if len(all) == 0 {
		t.Fatalf("no timer of %s runs", d)
	}
	for _, f := range all {
		f()
	}
}

// fromHeader makes a request seem to come from another address.
const fromHeader = "Test-From"

func serve(t testing.TB, h *Host) (base string) {
	t.Helper()
	if h.After == nil {
		h.Grace = time.Hour // otherwise Grace would end the games of tests without a stream
	}
	r := gin.New()
	h.Routes(r)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if from := q.Header.Get(fromHeader); from != "" {
			q.RemoteAddr = from
		}
		r.ServeHTTP(w, q)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(h.Close)
	return s.URL
}

// call sends a request and decodes the answer into the value to, unless that is nil.
func call(t testing.TB, method, url, body string, to any) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	if to != nil {
		require.NoError(t, json.Unmarshal(text, to), method, url, answer.StatusCode, text)
	}
	return answer
}

// refused checks that a request gets this status and a line that contains this text.
func refused(t *testing.T, method, url, body string, status int, says string) *http.Response {
	t.Helper()
	var p problem.Details
	answer := call(t, method, url, body, &p)
	if answer.StatusCode != status || !strings.Contains(p.Detail, says) || strings.Contains(p.Detail, "\n") || answer.Header.Get("Content-Type") != problem.ContentType {
		t.Errorf("%s %s %s: %d %q; want %d and %q", method, url, body, answer.StatusCode, p.Detail, status, says)
	}
	return answer
}

func begin(t testing.TB, base, body string) gameView {
	t.Helper()
	var v gameView
	if answer := call(t, http.MethodPost, base+"/play/games", body, &v); answer.StatusCode != http.StatusCreated || answer.Header.Get("Location") != "/play/games/"+v.ID {
		t.Fatalf("%d %v", answer.StatusCode, answer.Header)
	}
	return v
}

func (h *Host) pid(t *testing.T, id string) int {
	t.Helper()
	g, err := h.find(id)
	require.NoError(t, err)
	return g.process.cmd.Process.Pid
}

func lives(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

func awaitGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, "the process has ended", func() bool {
		state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return !lives(pid) || strings.Contains(string(state), ") Z ") // an orphan that has ended, although its new parent has not waited for it
	})
}

// TestPlayed wins a level over HTTP, with invalid moves that change nothing.
func TestPlayed(t *testing.T) {
	base := serve(t, &Host{Command: as("child")})
	v := begin(t, base, `{"level":"sell-twice"}`)
	at := base + "/play/games/" + v.ID
	if v.Level == nil || v.Level.Title == "" || v.Won != nil || len(v.Position.Buyers) != 2 {
		t.Fatalf("%+v", v)
	}
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/moves", `{"token":"9"}`, http.StatusConflict, `"9"; there are 1, 2`},
		{"/moves", `{}`, http.StatusConflict, "there are 1, 2"},
		{"/moves", `{"token":1}`, http.StatusBadRequest, "not the JSON"},
		{"/moves", `{"move":"1"}`, http.StatusBadRequest, "not the JSON"},
		{"/moves", `[`, http.StatusBadRequest, "not one JSON object"},
		{"/moves", ``, http.StatusUnsupportedMediaType, `{"token": "1"}`},
		{"/undo", ``, http.StatusConflict, "no step to take back"},
		{"/hint", `{"n":4}`, http.StatusBadRequest, "n must be between 1 and 3 (got 4)"},
	} {
		refused(t, http.MethodPost, at+c.path, c.body, c.status, c.says)
	}
	var same gameView
	if call(t, http.MethodGet, at, "", &same); !reflect.DeepEqual(same, v) {
		t.Errorf("bad moves have changed something: %+v", same)
	}
	var h advice
	call(t, http.MethodPost, at+"/hint", `{"n":1}`, &h)
	if h.Text == "" || h.Token != "" {
		t.Errorf("hint %+v", h)
	}
	for same.Won == nil {
		if call(t, http.MethodPost, at+"/hint", `{"n":3}`, &h); h.Token == "" || len(same.Position.Tokens) > 20 {
			t.Fatalf("hint %+v at %v", h, same.Position.Tokens)
		}
		call(t, http.MethodPost, at+"/moves", `{"token":"`+h.Token+`"}`, &same)
	}
	if same.Won.Learned == "" || same.Position.End.Replay == "" {
		t.Errorf("%+v", same.Won)
	}
	refused(t, http.MethodPost, at+"/moves", `{"token":"1"}`, http.StatusConflict, "the game is over")
	call(t, http.MethodPost, at+"/undo", "", &same)
	if same.Won != nil || same.Position.End != nil {
		t.Errorf("undone: %+v", same)
	}
	call(t, http.MethodPost, at+"/restart", "", &same)
	expect.DeepEqual(t, same.Position, v.Position, "restarted")
}

// TestProof: the search answers the claim, and hanging up stops it.
func TestProof(t *testing.T) {
	base := serve(t, &Host{Command: as("child")})
	v := begin(t, base, `{"strategy":"conditional"}`)
	var p struct {
		play.Proof
		Won *won `json:"won"`
	}
	if call(t, http.MethodPost, base+"/play/games/"+v.ID+"/prove", "", &p); !p.Holds || p.Won != nil {
		t.Errorf("%+v", p)
	}
	v = begin(t, base, `{"strategy":"redlock","buyers":3,"events":["expire","crash","forget"]}`) // takes hours
	events := watch(t, base, v.ID)
	ctx, hangUp := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, base+"/play/games/"+v.ID+"/prove", nil)
	ended := make(chan error, 1)
	go func() {
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		ended <- err
	}()
	await(t, events, "event: progress")
	hangUp()
	if err := <-ended; err == nil {
		t.Error("the search ended by itself")
	}
	var again gameView
	if call(t, http.MethodPost, base+"/play/games/"+v.ID+"/moves", `{"token":"`+v.Position.Choices[0].Token+`"}`, &again); len(again.Position.Tokens) != 1 {
		t.Errorf("after the search %+v", again)
	}
}

// watch reads the events of a game as a page does. The stream ends with the test.
func watch(t *testing.T, base, id string) *bufio.Scanner {
	t.Helper()
	scanner, _ := watchUntil(t, base, id)
	return scanner
}

func watchUntil(t *testing.T, base, id string) (lines *bufio.Scanner, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, base+"/play/games/"+id+"/events", nil)
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	t.Cleanup(func() { cancel(); answer.Body.Close() })
	lines = bufio.NewScanner(answer.Body)
	await(t, lines, "retry: 1000")
	return lines, cancel
}

// await reads up to a line with this prefix.
func await(t *testing.T, lines *bufio.Scanner, begins string) {
	t.Helper()
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), begins) {
			return
		}
	}
	t.Fatalf("the stream ended without %q: %v", begins, lines.Err())
}

// TestRefused: a configuration that cannot be played is refused in one line and takes no place.
func TestRefused(t *testing.T) {
	base := serve(t, &Host{Command: as("child"), Most: 1})
	for _, c := range []struct {
		body   string
		status int
		says   string
	}{
		{`{"strategy":"nosuch"}`, http.StatusBadRequest, "unknown strategy"},
		{`{}`, http.StatusBadRequest, "unknown strategy"},
		{`{"level":"nosuch"}`, http.StatusBadRequest, "GET /play/levels"},
		{`{"level":"sell-twice","strategy":"none"}`, http.StatusBadRequest, "not both"},
		{`{"strategy":"none","events":["rain"]}`, http.StatusBadRequest, "choose from: expire"},
		{`{"strategy":"none","buyers":5}`, http.StatusBadRequest, "between 2 and 4"},
		{`{"strategy":"none","stock":9}`, http.StatusBadRequest, "between 1 and 8"},
		{`{"strategy":"none","units":2}`, http.StatusBadRequest, "between 1 and the stock, 1"},
		{`{"strategy":"none","shared":true,"events":["crash"]}`, http.StatusBadRequest, `unknown event "crash"`},
		{`{"strategy":"zookeeper"}`, http.StatusNotImplemented, "zookeeper"},
		{`{"strategy":"named-lock"}`, http.StatusNotImplemented, "SQLite has no locks by name"},
		{``, http.StatusUnsupportedMediaType, "application/json"},
	} {
		refused(t, http.MethodPost, base+"/play/games", c.body, c.status, c.says)
	}
	refused(t, http.MethodGet, base+"/play/games/nosuch", "", http.StatusNotFound, "begin another one")
	begin(t, base, `{"strategy":"none"}`)
}

// TestFull: a 31st game is refused, and begins once another has ended.
func TestFull(t *testing.T) {
	h := &Host{Command: as("light")}
	base := serve(t, h)
	var ids sync.Map
	var all sync.WaitGroup
	for range Most {
		all.Go(func() { ids.Store(begin(t, base, `{"strategy":"none"}`).ID, true) })
	}
	all.Wait()
	answer := refused(t, http.MethodPost, base+"/play/games", `{"strategy":"none"}`, http.StatusServiceUnavailable, "30 games are being played; try again when one has ended")
	if answer.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	ids.Range(func(id, _ any) bool {
		call(t, http.MethodDelete, base+"/play/games/"+id.(string), "", nil)
		return false
	})
	begin(t, base, `{"strategy":"none"}`)
}
