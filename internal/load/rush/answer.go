package rush

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/purchase"
)

// An Answer is what one buyer got. Its times are the buyer's: from leaving the
// gate to the last byte.
type Answer struct {
	audit.Answer
	Receipt     string       // of a sale, as it came
	Detail      string       // of anything that is no sale
	Status      int          // of the response; 0 when there was none
	Inside      [2]time.Time // when the buy was inside the shop, where the shop says so; else zero
	Sent, Begun time.Time    // when the request was out and when its answer began; zero when that was never seen
	HungUp      bool         // the buyer closed the connection when its request was out and not answered
}

func (a Answer) saysWhen() bool { return !a.Inside[0].IsZero() }

// Answers are the answers as the audit takes them.
func Answers(all []Answer) []audit.Answer {
	audited := make([]audit.Answer, len(all))
	for i, a := range all {
		audited[i] = a.Answer
	}
	return audited
}

// RoundTrip notes when the request is out and when its answer begins, and hangs
// up for a buyer that does not stay. It is called by vegeta's client.
func (s *sender) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	m := s.at[request.URL.Fragment]
	s.mu.Unlock()
	ctx, hangUp := context.WithTimeout(s.ctx, s.Timeout)
	if m == nil { // the service has sent the buyer elsewhere
		return s.send(request.WithContext(ctx), hangUp)
	}
	trace := &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if info.Err != nil || !m.sent.IsZero() {
				return
			}
			m.sent = time.Now()
			leave := func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				first := !m.hungUp && m.begun.IsZero()
				m.hungUp = m.hungUp || first
				if first {
					hangUp()
				}
				return first
			}
			if m.buyer.HangUp > 0 {
				time.AfterFunc(m.buyer.HangUp, func() { leave() })
			}
			context.AfterFunc(ctx, s.Leavers.came(leave)) // it ends with its answer
		},
		GotFirstResponseByte: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			m.begun = time.Now()
		},
	}
	return s.send(request.WithContext(httptrace.WithClientTrace(ctx, trace)), hangUp)
}

// send makes the request, and calls hangUp when it has failed or its answer is
// closed.
func (s *sender) send(request *http.Request, hangUp func()) (*http.Response, error) {
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		hangUp()
		return nil, err
	}
	response.Body = body{response.Body, hangUp}
	return response, nil
}

// body ends its request when it is closed.
type body struct {
	io.ReadCloser
	end func()
}

func (b body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// answer reads a result, and says which request it is of. No response at all is
// Unknown: the sale may have been made. The URL names the buyer, whatever
// the receipt says.
func (s *sender) answer(r *vegeta.Result) (n int, a Answer) {
	_, id, _ := strings.Cut(r.URL, "#")
	n, _ = strconv.Atoi(id) // it is this package's own
	a = answerOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.at[id]; m != nil {
		a.Start = m.left // the wait for the others is not the shop's
		a.Sent, a.Begun = m.sent, m.begun
		a.HungUp = m.hungUp && a.Status == 0
		delete(s.at, id)
	}
	return n, a
}

func answerOf(r *vegeta.Result) Answer {
	a := Answer{Inside: readSpan(r.Headers.Get(purchase.SpanHeader)), Status: int(r.Code)}
	a.End = r.Timestamp.Add(r.Latency)
	a.Units = 1
	if u, err := url.Parse(r.URL); err == nil {
		a.Purchaser = u.Query().Get("purchaser")
		if units, err := strconv.ParseInt(u.Query().Get("amount"), 10, 64); err == nil {
			a.Units = units
		}
	}
	if r.Code == 0 {
		a.Outcome, a.Detail = purchase.Unknown, r.Error
		return a
	}
	a.Outcome, a.ID, a.Detail = ReadAnswer(a.Status, r.Body, a.Units)
	if a.Outcome == purchase.Sold {
		a.Receipt = string(r.Body)
	}
	return a
}

// ReadAnswer reads the answer to a buy of so many units: by the problem's own word, or by
// the status where the service has none, or says sold without a receipt. id is that of a
// sale's record, detail says what is not a sale.
func ReadAnswer(status int, body []byte, units int64) (outcome purchase.Outcome, id int64, detail string) {
	if status == http.StatusOK {
		var receipt struct {
			ID     int64 `json:"id"`
			Amount int64 `json:"amount"`
		}
		switch err := json.Unmarshal(body, &receipt); {
		case err != nil:
			return purchase.Failed, 0, "200 with a body that is no receipt: " + err.Error()
		case receipt.ID <= 0:
			return purchase.Failed, 0, "200 with a receipt that has no id"
		case receipt.Amount > 0 && receipt.Amount != units:
			return purchase.Failed, 0, fmt.Sprintf("200 with a receipt for %d units, and %d asked for", receipt.Amount, units)
		}
		return purchase.Sold, receipt.ID, ""
	}
	var problem struct {
		Outcome purchase.Outcome `json:"outcome"`
		Detail  string           `json:"detail"`
	}
	if json.Unmarshal(body, &problem) != nil || problem.Outcome == purchase.Sold || !slices.Contains(purchase.Outcomes(), problem.Outcome) {
		problem.Outcome = outcomeOfStatus(status)
	}
	return problem.Outcome, 0, fmt.Sprintf("%d %s", status, cmp.Or(problem.Detail, http.StatusText(status)))
}

func outcomeOfStatus(code int) purchase.Outcome {
	switch code {
	case http.StatusConflict:
		return purchase.SoldOut
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return purchase.Busy
	case http.StatusGatewayTimeout:
		return purchase.Unknown
	}
	return purchase.Failed
}

// readSpan reads a purchase.SpanHeader; zero when there is none that makes sense.
func readSpan(header string) (span [2]time.Time) {
	from, to, found := strings.Cut(header, "-")
	called, err1 := strconv.ParseInt(from, 10, 64)
	returned, err2 := strconv.ParseInt(to, 10, 64)
	if !found || err1 != nil || err2 != nil || called > returned {
		return span
	}
	return [2]time.Time{time.UnixMicro(called), time.UnixMicro(returned)}
}

// inside are the answers with the times at which each buy was inside the shop, if it
// says so of each sale, else as the buyers saw it.
//
// The buyers' view flatters a crowd: it counts every buyer that has sent and has
// no answer, though the service may take one request at a time.
func inside(answers []Answer) []audit.Answer {
	says := slices.ContainsFunc(answers, Answer.saysWhen) && !slices.ContainsFunc(answers, func(a Answer) bool {
		return a.Outcome == purchase.Sold && !a.saysWhen()
	})
	if !says {
		return Answers(answers)
	}
	var within []audit.Answer
	for _, a := range answers {
		if a.saysWhen() { // else it was refused at the door
			a.Start, a.End = a.Inside[0], a.Inside[1]
			within = append(within, a.Answer)
		}
	}
	return within
}

// Overlap is audit.Overlap, by the times inside the shop where it says them.
func Overlap(answers []Answer) int { return audit.Overlap(inside(answers)) }

// ProgressOf is audit.ProgressOf of all visits, by the times inside the shop where it
// says them. What a purchase takes is that of the answers, which are the visits without
// those that repeat a request: a receipt is faster the second time. A crowd to which
// nothing was sold says nothing of what a purchase takes: usual does.
func ProgressOf(visits, answers []Answer, usual, lease, wait time.Duration) audit.Progress {
	p := audit.ProgressOf(inside(visits), lease, wait)
	p.Usual = cmp.Or(audit.Usual(inside(answers)), usual)
	return p
}
