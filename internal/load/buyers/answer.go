package buyers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/purchase"
)

// An Answer is the result of one buyer. The client measures its times, from the start of the request to the
// last byte of the answer.
type Answer struct {
	audit.Answer
	Receipt           string       // text of the receipt that a sale returned, unchanged
	Detail            string       // description of an answer that is no sale
	Inside            [2]time.Time // start and end of the purchase inside the shop; zero if the shop does not say
	Sent, AnswerBegan time.Time    // when the request was sent and its answer began; zero if that was not seen
	Unreached         bool         // no connection: the shop did not see the request
	HungUp            bool         // the buyer closed the connection before the answer
	First             time.Time    // start of the buyer's first request; Start belongs to its last one
	Returns           int          // how often the buyer sent its request again after a refusal

	mayReturn    bool // the answer has a Retry-After, read into returnsAfter
	returnsAfter time.Duration
}

// SaysWhen reports whether the shop said when the purchase was inside it.
func (a Answer) SaysWhen() bool { return !a.Inside[0].IsZero() }

// Answers returns the answers in the form that the audit takes.
func Answers(all []Answer) []audit.Answer {
	audited := make([]audit.Answer, len(all))
	for i, a := range all {
		audited[i] = a.Answer
	}
	return audited
}

// AnswerOf reads the answer to a buyer. Without a complete response the outcome is Unknown, since the shop may
// have sold. If the order does not name the buyer, the name comes from the receipt.
func AnswerOf(x Exchange, b Buyer) Answer {
	a := Answer{
		Inside: readSpan(x.Header.Get(purchase.SpanHeader)), Sent: x.Sent, AnswerBegan: x.AnswerBegan,
		Unreached: x.Err != nil && !x.Connected, HungUp: x.HungUp,
	}
	a.Purchaser, a.Units, a.Start, a.End = b.Name, max(b.Units, 1), x.Start, x.End
	a.Status = x.Status
	if x.Err != nil {
		a.Outcome, a.Detail = purchase.Unknown, x.Err.Error()
		hasLeft := errors.Is(x.Err, context.DeadlineExceeded) || errors.Is(x.Err, context.Canceled) // the buyer closed the connection
		a.IsLost = x.Connected && !hasLeft
		return a
	}
	a.returnsAfter, a.mayReturn = retryAfter(x.Header, x.End)
	a.Outcome, a.ID, a.Detail = ReadAnswer(x.Status, x.Body, a.Units)
	if a.Outcome == purchase.Sold {
		a.Receipt = string(x.Body)
		if b.Name == "" {
			a.Purchaser = purchaserIn(x.Body)
		}
	}
	return a
}

func purchaserIn(body []byte) string {
	var receipt struct {
		Purchaser string `json:"purchaser"`
	}
	_ = json.Unmarshal(body, &receipt) // ReadAnswer has already parsed it without an error
	return receipt.Purchaser
}

// ReadAnswer reads the answer to a purchase. If there is no receipt, the body or else the status gives the
// outcome. For a sale, `id` is the id of its record. For any other answer, `detail` describes the answer.
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

// readSpan parses the header purchase.SpanHeader. It returns zero times if the header is invalid.
func readSpan(header string) (span [2]time.Time) {
	from, to, found := strings.Cut(header, "-")
	called, err1 := strconv.ParseInt(from, 10, 64)
	returned, err2 := strconv.ParseInt(to, 10, 64)
	if !found || err1 != nil || err2 != nil || called > returned {
		return span
	}
	return [2]time.Time{time.UnixMicro(called), time.UnixMicro(returned)}
}
