package rush

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/sqlerror"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/purchase"
)

// An Auditor reads the true stock and records.
type Auditor interface {
	// Audit reads the product's stock and records.
	Audit(ctx context.Context, product string) (audit.Sums, error)
	// Sales returns the product's records by their id. It returns errNoHistory if the service does not show them.
	Sales(ctx context.Context, product string) (map[int64]audit.Sale, error)
}

// errNoHistory means that the service has no purchase_history route. Then only the number of lost sales is known.
var errNoHistory = errors.New("the service shows no purchase history")

const page = purchase.MaxPage

// Database reads the shop's own database.
type Database struct {
	DB *gorm.DB
	// Nodes returns the servers of a cluster, so that each can be read separately. It is nil or returns none
	// if there is one server. DB sees everything that was committed at any server.
	Nodes func() ([]*gorm.DB, error)
	// AgreeWithin is how long the nodes may differ in stock and records. They may differ for a while because a
	// sale is still under way when the first node is read. 0 means 15 s.
	AgreeWithin time.Duration
}

const agreeWithin = 15 * time.Second

// Audit implements Auditor. It reads each running node of a cluster and waits until the nodes agree.
func (b Database) Audit(ctx context.Context, product string) (audit.Sums, error) {
	if b.Nodes == nil {
		return audit.Read(ctx, b.DB, product)
	}
	nodes, err := b.Nodes()
	if err != nil {
		return audit.Sums{}, err
	}
	if len(nodes) == 0 {
		return audit.Read(ctx, b.DB, product)
	}
	patience := cmp.Or(b.AgreeWithin, agreeWithin)
	var before []book
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		books, err := readAll(ctx, nodes, product)
		if err != nil {
			return audit.Sums{}, err
		}
		if !slices.ContainsFunc(books, func(other book) bool { return other != books[0] }) {
			return books[0].Sums, nil
		}
		moves := !slices.Equal(books, before) // a shop still sells, or a node still applies sales of other nodes
		before = books
		if time.Now().After(deadline) && !moves {
			r := books[0].Sums
			r.Diverged = fmt.Sprintf("after %s the nodes still have different books: %s", patience, inWords(books))
			return r, nil
		}
	}
}

// Held describes the transaction that has locked the row of a product. It returns "" if the row is not locked.
func (b Database) Held(ctx context.Context, product string) (string, error) {
	return purchase.Held(ctx, b.DB, product)
}

// A book is the stock and the records of a product on one node.
type book struct {
	audit.Sums
	IDs int64 // the sum of the records' ids
}

func inWords(books []book) string {
	var all []string
	for i, b := range books {
		all = append(all, fmt.Sprintf("node %d: %d left, %d records", i, b.Leftover, b.Records))
	}
	return strings.Join(all, "; ")
}

// readAll reads each running node. It returns an error if no node runs, or if a node fails although it runs.
func readAll(ctx context.Context, nodes []*gorm.DB, product string) (books []book, _ error) {
	var all sync.WaitGroup
	read, errs := make([]book, len(nodes)), make([]error, len(nodes))
	for i, node := range nodes {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, agreeWithin) // a frozen node does not answer
			defer cancel()
			if read[i].Sums, errs[i] = audit.Read(ctx, node, product); errs[i] == nil {
				errs[i] = node.WithContext(ctx).Raw("SELECT COALESCE(SUM(id), 0) FROM purchase_history WHERE product_name = ?", product).Scan(&read[i].IDs).Error
			}
		})
	}
	all.Wait()
	for i := range nodes {
		frozen := errors.Is(errs[i], context.DeadlineExceeded) && ctx.Err() == nil
		switch {
		case errs[i] == nil:
			books = append(books, read[i])
		case !frozen && sqlerror.KindOf(errs[i]) != sqlerror.Down:
			return nil, fmt.Errorf("node %d: %w", i, errs[i])
		}
	}
	if len(books) == 0 {
		return nil, errs[0]
	}
	return books, nil
}

// settleTimeout is how long a shop may take to finish the orders of buyers that got no answer.
const settleTimeout = 10 * time.Second

// settle audits a product after all buyers are done. `isDoubtful` means that some buyers got no answer, so the
// shop may still be working. In that case settle repeats the audit for up to 10 s, until two consecutive
// audits are equal and stock and records agree. It does not wait for an oversold product, which never agrees.
func settle(ctx context.Context, a Auditor, product string, isDoubtful bool) (last audit.Sums, _ error) {
	for deadline := time.Now().Add(settleTimeout); ; {
		now, err := a.Audit(ctx, product)
		isSettled := now == last && (now.Drift == 0 || now.Oversold > 0)
		if err != nil || !isDoubtful || isSettled || time.Now().After(deadline) {
			return now, err
		}
		last = now
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
}

// Sales implements Auditor.
func (b Database) Sales(ctx context.Context, product string) (map[int64]audit.Sale, error) {
	found := map[int64]audit.Sale{}
	for after := int64(0); ; {
		records, err := purchase.Page(b.DB.WithContext(ctx), product, after, page)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			left, waited := r.LeftAfter, r.WaitedMS
			found[r.ID] = audit.Sale{Purchaser: r.Purchaser, Amount: r.Amount, Left: &left, WaitedMS: &waited}
			after = r.ID
		}
		if len(records) < page {
			return found, nil
		}
	}
}

// Compared is the result of a comparison of answers and records.
type Compared struct {
	Lost, Untold int64                // receipts without a record, and records without a receipt
	Sales        map[int64]audit.Sale // records by id; nil if the service does not show its records
}

// Compare compares answers with the product's records. If the service does not show its records, Compare uses
// the sums in `audited`.
func Compare(ctx context.Context, a Auditor, product string, answers []audit.Answer, audited audit.Sums) (c Compared, err error) {
	c.Sales, err = a.Sales(ctx, product)
	switch {
	case errors.Is(err, errNoHistory):
		c.Lost, c.Untold = inSum(answers, audited)
		return c, nil
	case err == nil:
		c.Lost, c.Untold = audit.Compare(answers, c.Sales)
	}
	return c, err
}

// inSum returns how many receipts without a record, and how many records without a receipt, the sums prove at
// least.
func inSum(answers []audit.Answer, audited audit.Sums) (lost, untold int64) {
	var sold, unknown int64
	for _, a := range answers {
		switch a.Outcome {
		case purchase.Sold:
			sold++
		case purchase.Unknown:
			unknown++
		}
	}
	return max(0, sold-audited.Records), max(0, audited.Records-sold-unknown)
}
