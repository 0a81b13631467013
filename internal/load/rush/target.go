package rush

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// Target is a service with the shop's buy, product and audit routes, in any language. It also implements Auditor.
type Target struct {
	BaseURL string
	Token   string // token for the admin route; "" for none
}

const reachTimeout = 10 * time.Second

// restockTimeout is long because a restock may delete millions of records.
const restockTimeout = 10 * time.Minute

// Restock deletes the product's records and puts `amount` units on sale. The error is a *RestockError if the
// service answers 500, and a *TimeoutError if it answers 503.
func (t Target) Restock(ctx context.Context, product string, amount int64) error {
	body, err := json.Marshal(map[string]int64{"amount": amount})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, restockTimeout)
	defer cancel()
	status, err := t.do(ctx, http.MethodPut, "/product/"+url.PathEscape(product), bytes.NewReader(body), nil)
	switch status {
	case http.StatusInternalServerError:
		return &RestockError{err}
	case http.StatusServiceUnavailable:
		return &TimeoutError{err}
	case http.StatusUnauthorized:
		if err != nil && strings.Contains(err.Error(), "started without SHOP_ADMIN_TOKEN") {
			return errors.New("the service refused the restock: it was started without SHOP_ADMIN_TOKEN; start it with one, and set the same here")
		}
		return errors.New("the service refused the restock: set SHOP_ADMIN_TOKEN to its admin token")
	}
	return err
}

// A RestockError means that the service answered a restock with 500, an error of its own: for an unavailable
// server it would answer 503. So the service breaks its promise.
type RestockError struct{ Err error }

func (e *RestockError) Error() string { return "the service cannot restock: " + e.Err.Error() }

func (e *RestockError) Unwrap() error { return e.Err }

// A TimeoutError means that a time limit ended before a rush. Either a server of the service did not answer in time
// (503), or the lease or the wait of a lone buyer ended. On an idle machine, the strategy may be the cause.
type TimeoutError struct{ Err error }

func (e *TimeoutError) Error() string { return e.Err.Error() }

func (e *TimeoutError) Unwrap() error { return e.Err }

// Audit implements Auditor. It reads four counts from the service and computes the other numbers itself, since
// a broken service may also compute wrong ones.
func (t Target) Audit(ctx context.Context, product string) (audit.Sums, error) {
	path := "/audit?product=" + url.QueryEscape(product)
	var counts struct {
		Stocked    *int64 `json:"stocked"`
		Leftover   *int64 `json:"leftover"`
		Records    *int64 `json:"records"`
		UnitsSold  *int64 `json:"units_sold"`
		Duplicates int64  `json:"duplicates"`
	}
	if _, err := t.do(ctx, http.MethodGet, path, nil, &counts); err != nil {
		return audit.Sums{}, err
	}
	for name, count := range map[string]*int64{
		"stocked": counts.Stocked, "leftover": counts.Leftover, "records": counts.Records, "units_sold": counts.UnitsSold,
	} {
		if count == nil {
			return audit.Sums{}, fmt.Errorf("GET %s: %s is missing; the answer must have stocked, leftover, records and units_sold", path, name)
		}
	}
	return audit.Sums{
		Stocked: *counts.Stocked, Leftover: *counts.Leftover, Records: *counts.Records, UnitsSold: *counts.UnitsSold,
		Duplicates: counts.Duplicates,
	}.Computed(), nil
}

// Sales implements Auditor. It follows the member "next" from page to page, with any page size. The error
// is a *TimeoutError if the service answers 503.
func (t Target) Sales(ctx context.Context, product string) (map[int64]audit.Sale, error) {
	return t.sales(ctx, product, page)
}

func (t Target) sales(ctx context.Context, product string, page int) (map[int64]audit.Sale, error) {
	found := map[int64]audit.Sale{}
	for after := int64(0); ; {
		path := fmt.Sprintf("/purchase_history?product=%s&after=%d&limit=%d", url.QueryEscape(product), after, page)
		var answer struct {
			Records json.RawMessage `json:"records"` // some encoders write a list without records as null
			Next    *int64          `json:"next"`
		}
		var records []struct {
			ID        int64  `json:"id"`
			Purchaser string `json:"purchaser"`
			Amount    int64  `json:"amount"`
		}
		status, err := t.do(ctx, http.MethodGet, path, nil, &answer)
		if status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
			return nil, errNoHistory
		}
		if status == http.StatusServiceUnavailable {
			return nil, &TimeoutError{err}
		}
		if err != nil {
			return nil, err
		}
		if answer.Records == nil { // reject such an answer, since a service may answer an unknown route with 200
			return nil, errNoHistory
		}
		if err := json.Unmarshal(answer.Records, &records); err != nil {
			return nil, fmt.Errorf("GET %s: records: %w", path, err)
		}
		for _, r := range records {
			found[r.ID] = audit.Sale{Purchaser: r.Purchaser, Amount: r.Amount}
		}
		if answer.Next == nil {
			return found, nil
		}
		if *answer.Next <= after {
			return nil, fmt.Errorf("GET %s: next is %d, which does not advance to another page", path, *answer.Next)
		}
		after = *answer.Next
	}
}

// A TargetStrategy is one entry of the list that a service returns at /strategies.
type TargetStrategy struct {
	Name      string                     `json:"name"`
	Available *bool                      `json:"available"` // null counts as available
	Reason    string                     `json:"reason"`    // why the strategy is unavailable
	Promise   map[string]verdict.Verdict `json:"promise"`   // promised verdict by condition; may be empty
}

// Strategies returns the service's list of strategies, or nil if the service has no route /strategies. It
// returns an error if the service does not answer.
func (t Target) Strategies(ctx context.Context) ([]TargetStrategy, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	var list []TargetStrategy
	status, err := t.do(ctx, http.MethodGet, "/strategies", nil, &list)
	if status == 0 && err != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil // the route belongs to another kind of service, and the rush does not need its list
	}
	return list, nil
}

// CanRun reports whether the target says that it can run the strategy now.
func (s TargetStrategy) CanRun() bool { return s.Available == nil || *s.Available }

// do sends one request and decodes a 2xx answer into v, if v is not nil.
func (t Target) do(ctx context.Context, method, path string, body io.Reader, v any) (status int, _ error) {
	if method == http.MethodGet {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Minute)
		defer cancel()
	}
	request, err := http.NewRequestWithContext(ctx, method, t.BaseURL+path, body)
	if err != nil {
		return 0, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if t.Token != "" {
		request.Header.Set("Authorization", "Bearer "+t.Token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return response.StatusCode, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return response.StatusCode, fmt.Errorf("%s %s: %s: %.200s", method, path, response.Status, strings.Join(strings.Fields(string(text)), " "))
	}
	if v == nil {
		return response.StatusCode, nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return response.StatusCode, fmt.Errorf("%s %s did not answer with this route's JSON: %w", method, path, err)
	}
	return response.StatusCode, nil
}
