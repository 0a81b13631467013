package rush

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/purchase"
)

// An Auditor reads what really happened.
type Auditor interface {
	// Audit reads the product's stock and records.
	Audit(ctx context.Context, product string) (audit.Report, error)
	// Sales returns the product's records by their id. errNoHistory when the
	// service does not show them.
	Sales(ctx context.Context, product string) (map[int64]audit.Sale, error)
}

// errNoHistory: the target has no purchase_history route. Lost sales can then
// be counted only in sum.
var errNoHistory = errors.New("the service shows no purchase history")

// page is how many records are asked for at once.
const page = purchase.MaxPage

// Database reads the shop's own database.
type Database struct{ DB *gorm.DB }

// Audit is Auditor.Audit.
func (b Database) Audit(ctx context.Context, product string) (audit.Report, error) {
	return audit.Read(ctx, b.DB, product)
}

// Sales is Auditor.Sales.
func (b Database) Sales(ctx context.Context, product string) (map[int64]audit.Sale, error) {
	found := map[int64]audit.Sale{}
	for after := int64(0); ; {
		records, err := purchase.Page(b.DB.WithContext(ctx), product, after, page)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			found[r.ID] = audit.Sale{Purchaser: r.Purchaser, Amount: r.Amount}
			after = r.ID
		}
		if len(records) < page {
			return found, nil
		}
	}
}

// Compare holds answers against the product's records, or against their sums
// where the service does not show them.
func Compare(ctx context.Context, a Auditor, product string, answers []audit.Answer, audited audit.Report) (lost, untold int64, _ error) {
	sales, err := a.Sales(ctx, product)
	if errors.Is(err, errNoHistory) {
		lost, untold = inSum(answers, audited)
		return lost, untold, nil
	}
	if err != nil {
		return 0, 0, err
	}
	lost, untold = audit.Compare(answers, sales)
	return lost, untold, nil
}

// inSum is what the sums alone prove: at least so many receipts have no record,
// at least so many records no receipt.
func inSum(answers []audit.Answer, audited audit.Report) (lost, untold int64) {
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
