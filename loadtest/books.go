package loadtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/verdict"
)

// Books are where the rush reads what really happened.
type Books interface {
	// Audit reads the state of the product's books.
	Audit(ctx context.Context, product string) (audit.Report, error)
	// Purchasers returns who bought, by the record's id. errNoHistory when
	// the service does not show its records.
	Purchasers(ctx context.Context, product string) (map[int64]string, error)
}

// errNoHistory: the target has no purchase_history route. Lost sales can then
// be counted only in sum.
var errNoHistory = errors.New("the service shows no purchase history")

// page is how many records are read at once.
const page = purchase.MaxPage

// DatabaseBooks reads the shop's own database.
type DatabaseBooks struct{ DB *gorm.DB }

// Audit is Books.Audit.
func (b DatabaseBooks) Audit(ctx context.Context, product string) (audit.Report, error) {
	return audit.Read(ctx, b.DB, product)
}

// Purchasers is Books.Purchasers.
func (b DatabaseBooks) Purchasers(ctx context.Context, product string) (map[int64]string, error) {
	return collect(func(after int64) ([]purchase.Record, error) {
		return purchase.Page(b.DB.WithContext(ctx), product, after, page)
	})
}

// collect reads page after page until one is not full.
func collect(read func(after int64) ([]purchase.Record, error)) (map[int64]string, error) {
	found := map[int64]string{}
	after := int64(0)
	for {
		records, err := read(after)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			found[r.ID] = r.Purchaser
			after = r.ID
		}
		if len(records) < page {
			return found, nil
		}
	}
}

// Target is a service that speaks the shop's buy, product and audit routes,
// in whatever language. It is Books, too.
type Target struct {
	BaseURL string
	Token   string       // for the admin route; "" for none
	Client  *http.Client // without a time limit: a restock may take long
}

// restockPatience: millions of records may have to be deleted.
const restockPatience = 10 * time.Minute

// Restock puts amount units on sale and forgets the product's records.
func (t Target) Restock(ctx context.Context, product string, amount int64) error {
	body, err := json.Marshal(map[string]int64{"amount": amount})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, restockPatience)
	defer cancel()
	_, err = t.do(ctx, http.MethodPut, "/product/"+url.PathEscape(product), bytes.NewReader(body), nil)
	return err
}

// Audit is Books.Audit.
func (t Target) Audit(ctx context.Context, product string) (r audit.Report, err error) {
	_, err = t.do(ctx, http.MethodGet, "/audit?product="+url.QueryEscape(product), nil, &r)
	return r, err
}

// Purchasers is Books.Purchasers.
func (t Target) Purchasers(ctx context.Context, product string) (map[int64]string, error) {
	return collect(func(after int64) ([]purchase.Record, error) {
		var answer struct {
			Records []purchase.Record `json:"records"`
		}
		status, err := t.do(ctx, http.MethodGet,
			fmt.Sprintf("/purchase_history?product=%s&after=%d&limit=%d", url.QueryEscape(product), after, page), nil, &answer)
		if status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
			return nil, errNoHistory
		}
		return answer.Records, err
	})
}

// A TargetStrategy is one entry of a target's /strategies.
type TargetStrategy struct {
	Name      string                     `json:"name"`
	Available *bool                      `json:"available"` // missing: it is
	Promise   map[string]verdict.Verdict `json:"promise"`   // by fault; the target may make none
}

// Strategies returns what the target says that it can run now, nil when it has
// no such route.
func (t Target) Strategies(ctx context.Context) []TargetStrategy {
	var list []TargetStrategy
	if _, err := t.do(ctx, http.MethodGet, "/strategies", nil, &list); err != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(s TargetStrategy) bool { return s.Available != nil && !*s.Available })
}

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
	response, err := t.Client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return response.StatusCode, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return response.StatusCode, fmt.Errorf("%s %s: %s: %.200s", method, path, response.Status, text)
	}
	if v == nil {
		return response.StatusCode, nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return response.StatusCode, fmt.Errorf("%s %s answered with something else than this route's JSON: %w", method, path, err)
	}
	return response.StatusCode, nil
}
