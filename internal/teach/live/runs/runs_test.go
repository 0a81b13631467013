package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/teach/live"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	goleak.VerifyTestMain(m)
}

// sender sends no crowd. Each run ends when the test says so.
type sender struct {
	begun  chan *Recorder
	goOn   chan error
	result rush.Result
}

func newSender() *sender {
	return &sender{begun: make(chan *Recorder), goOn: make(chan error), result: rush.Result{Strategy: "any", Verdict: verdict.Oversold, Promise: verdict.Drifted}}
}

func (s *sender) Check(r *Request) error {
	if r.Buyers < 1 {
		return errors.New("buyers is 0")
	}
	if r.Fault != "" {
		return s.CheckFault(r.Fault)
	}
	return nil
}

func (s *sender) Command(r Request) string {
	line := fmt.Sprint("shop rush --buyers ", r.Buyers)
	if r.Fault != "" {
		line += " --strike " + r.Fault
	}
	return line
}
func (s *sender) Faults() []Fault { return []Fault{{"crash", "a process is killed"}} }

func (s *sender) CheckFault(name string) error {
	if name != "crash" {
		return errors.New("choose from: crash")
	}
	return nil
}

func (s *sender) Send(ctx context.Context, r Request, to *Recorder) (rush.Report, error) {
	report := rush.Report{Engine: "none", Stock: r.Stock}
	to.Begin("any")
	s.begun <- to
	select {
	case err := <-s.goOn:
		if err != nil {
			return report, err
		}
	case <-ctx.Done():
		return report, ctx.Err()
	}
	to.Judged(s.result)
	to.Ended(s.result)
	report.Results = append(report.Results, s.result)
	return report, nil
}

type served struct {
	*testing.T
	*httptest.Server
	keeper *Keeper
}

func serve(t *testing.T, s *sender) served {
	t.Helper()
	k := NewKeeper(live.NewHub(nil), s)
	r := gin.New()
	k.Routes(r, func(*gin.Context) {})
	server := httptest.NewServer(r)
	t.Cleanup(func() { k.Close(); server.Close() })
	return served{t, server, k}
}

func (s served) post(path, body string) (int, string) {
	return s.do(http.MethodPost, path, body, "application/json")
}

func (s served) do(method, path, body, contentType string) (int, string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := s.Client().Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	var text strings.Builder
	_ = response.Write(&text)
	return response.StatusCode, text.String()
}

// ended waits until no run is under way and returns the last one.
func (s served) ended() Run {
	s.Helper()
	require.Eventually(s, "the run ends", func() bool { return s.keeper.Summaries()[0].State != Running })
	run, _ := s.keeper.Run(s.keeper.Summaries()[0].ID)
	return run
}

// TestRun: a run continues after its request and is kept with its results. Another run must wait
// until it has ended.
func TestRun(t *testing.T) {
	s := newSender()
	srv := serve(t, s)
	if status, body := srv.post("/live/runs", `{"strategies":["any"],"buyers":7}`); status != http.StatusAccepted || !strings.Contains(body, `"shop rush --buyers 7"`) {
		t.Fatal(status, body)
	}
	to := <-s.begun
	if status, body := srv.post("/live/runs", `{"strategies":["any"]}`); status != http.StatusConflict || !strings.Contains(body, "one at a time") {
		t.Errorf("a second one: %d %s", status, body)
	}
	to.Event(history.Event{Kind: history.Call, Strategy: "any", Product: "apple", Purchaser: "<b>"})
	to.Struck(Strike{Fault: "crash", Strategy: "any", Proof: "it <ended>"})
	s.goOn <- nil
	run := srv.ended()
	if run.State != Done || len(run.Rows) != 1 || !run.Rows[0].Kept || len(run.Lanes) != 1 || len(run.Events) != 2 || len(run.Strikes) != 1 || len(run.Report.Results) != 1 {
		t.Errorf("%+v", run)
	}
	status, page := srv.do(http.MethodGet, "/live/runs/"+run.ID+".html", "", "")
	for _, want := range []string{"shop rush --buyers 7", "crash took effect on any", "it &lt;ended&gt;", "<svg", "style-src 'sha256-"} {
		if status != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("the page has no %q: %d", want, status)
		}
	}
	for _, no := range []string{"<script", "<link", "src=", "<b>"} {
		if strings.Contains(page, no) {
			t.Errorf("the page has %s", no)
		}
	}
	var answer Run
	_, text := srv.do(http.MethodGet, "/live/runs/"+run.ID, "", "")
	if err := json.Unmarshal([]byte(text[strings.Index(text, "\r\n\r\n")+4:]), &answer); err != nil || answer.ID != run.ID || len(answer.Events) != 2 {
		t.Errorf("%v %.200s", err, text)
	}
}

// TestEnds: a run reports that it was stopped, that it failed, or that the shop ended. After the
// first two, the next run may begin.
func TestEnds(t *testing.T) {
	s := newSender()
	srv := serve(t, s)
	start := func() {
		t.Helper()
		if status, body := srv.post("/live/runs", `{"strategies":["any"]}`); status != http.StatusAccepted {
			t.Fatal(status, body)
		}
		<-s.begun
	}
	start()
	if status, body := srv.post("/live/stop", ""); status != http.StatusAccepted {
		t.Errorf("stop: %d %s", status, body)
	}
	if run := srv.ended(); run.State != Stopped || run.TookMS <= 0 {
		t.Errorf("%+v", run.Summary)
	}
	start()
	s.goOn <- errors.New("the database\nis down")
	if run := srv.ended(); run.State != Failed || run.Error != "the database; is down" {
		t.Errorf("%+v", run.Summary)
	}
	if status, _ := srv.post("/live/stop", ""); status != http.StatusConflict {
		t.Errorf("nothing to stop: %d", status)
	}
	if status, _ := srv.post("/live/strikes", `{"fault":"crash"}`); status != http.StatusConflict {
		t.Errorf("no run to inject a fault into: %d", status)
	}
	start()
	srv.keeper.Close()
	if run := srv.ended(); run.State != Stopped {
		t.Errorf("%+v", run.Summary)
	}
	if status, _ := srv.post("/live/runs", `{"strategies":["any"]}`); status != http.StatusServiceUnavailable {
		t.Errorf("a shop that ends: %d", status)
	}
}

// TestTooLate: a fault that is requested after the last crowd is recorded as missed.
func TestTooLate(t *testing.T) {
	s := newSender()
	srv := serve(t, s)
	if status, body := srv.post("/live/runs", `{"strategies":["any"],"buyers":7}`); status != http.StatusAccepted {
		t.Fatal(status, body)
	}
	<-s.begun
	if status, body := srv.post("/live/strikes", `{"fault":"crash"}`); status != http.StatusAccepted {
		t.Fatal(status, body)
	}
	s.goOn <- nil
	if run := srv.ended(); len(run.Strikes) != 1 || run.Strikes[0].Missed != "the last crowd was gone" || run.Strikes[0].Strategy != "any" {
		t.Errorf("%+v", run.Strikes)
	}
}

// TestByHand: if a fault was injected by hand, the command that repeats the run injects it too, and
// says that it was injected by hand.
func TestByHand(t *testing.T) {
	s := newSender()
	srv := serve(t, s)
	if status, body := srv.post("/live/runs", `{"strategies":["any"],"buyers":7}`); status != http.StatusAccepted {
		t.Fatal(status, body)
	}
	to := <-s.begun
	to.Struck(Strike{Fault: "crash", Strategy: "any", Missed: "nobody held", ByHand: true})
	to.Struck(Strike{Fault: "crash", Strategy: "any", Proof: "it ended", ByHand: true})
	s.goOn <- nil
	if run := srv.ended(); run.Command != "shop rush --buyers 7 --strike crash # crash was injected into any by hand" {
		t.Errorf("%q", run.Command)
	}
}

// TestKept: the last 50 runs are kept, with a limited number of events.
func TestKept(t *testing.T) {
	s := newSender()
	srv := serve(t, s)
	for i := range kept + 3 {
		require.NoError(t, expect.ErrorOf(srv.keeper.Start(Request{Strategies: []string{"any"}, Product: "apple", Buyers: i + 1})))
		to := <-s.begun
		for n := 0; n < maxEvents+1 && i > kept-12; n++ { // more than all kept events
			to.Event(history.Event{Kind: history.Call, Strategy: "any", Product: "apple", Purchaser: "b"})
		}
		s.goOn <- nil
		srv.ended()
	}
	list, events := srv.keeper.Summaries(), 0
	if len(list) != kept || list[0].Number != kept+3 {
		t.Errorf("%d runs, the last is number %d", len(list), list[0].Number)
	}
	for i, s := range list {
		run, _ := srv.keeper.Run(s.ID)
		events += len(run.Events)
		if i < 10 && len(run.Events)+run.LeftOut != maxEvents+1 || i == 0 && len(run.Events) != maxEvents {
			t.Errorf("run %d has %d events and left out %d", run.Number, len(run.Events), run.LeftOut)
		}
	}
	if events > allEvents {
		t.Errorf("%d events are kept", events)
	}
}

// TestBadInput: the error is one line that says what to do, and no run begins.
func TestBadInput(t *testing.T) {
	srv := serve(t, newSender())
	for _, c := range []struct {
		path, body, contentType string
		status                  int
		want                    string
	}{
		{"/live/runs", `{"strategies":["any"],"buyers":0}`, "application/json", 400, "buyers is 0"},
		{"/live/runs", `{"strategies":["any"],"buyres":3}`, "application/json", 400, "buyres"},
		{"/live/runs", `[]`, "application/json", 400, "not one JSON object"},
		{"/live/runs", `{"strategies":["any"],"fault":"flood"}`, "application/json", 400, "choose from: crash"},
		{"/live/runs", `{"strategies":["any"]}`, "text/plain", 415, "application/json"},
		{"/live/runs", `{"strategies":["any"]}`, "", 415, "application/json"},
		{"/live/strikes", `{"fault":"flood"}`, "application/json", 400, "choose from: crash"},
		{"/live/strikes", `{"fault":"crash"}`, "application/json", 409, "send a crowd"},
		{"/live/stop", "", "application/x-www-form-urlencoded", 415, "application/json"},
	} {
		status, body := srv.do(http.MethodPost, c.path, c.body, c.contentType)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %s: %d %s; want %d and %q", c.path, c.body, c.contentType, status, body, c.status, c.want)
		}
	}
	if status, body := srv.do(http.MethodGet, "/live/runs/nosuch.html", "", ""); status != http.StatusNotFound || !strings.Contains(body, "no such run") {
		t.Errorf("%d %s", status, body)
	}
	expect.Equal(t, len(srv.keeper.Summaries()), 0, "runs began")
}

type atOnce struct{ *sender }

func (atOnce) Send(ctx context.Context, r Request, _ *Recorder) (rush.Report, error) {
	return rush.Report{}, ctx.Err()
}

// TestCloseWhileStarting: after Close no run is under way, even if Start was called at the same
// time.
func TestCloseWhileStarting(t *testing.T) {
	for range 300 {
		k := NewKeeper(live.NewHub(nil), atOnce{newSender()})
		var started sync.WaitGroup
		started.Go(func() { _, _ = k.Start(Request{Strategies: []string{"any"}, Product: "apple"}) })
		k.Close()
		before := k.Summaries()
		started.Wait()
		if after := k.Summaries(); len(after) > 0 && (len(before) == 0 || before[0].State == Running) {
			t.Fatalf("a run began beside Close: %+v", after)
		}
	}
}
