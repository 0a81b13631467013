// serializable: the naive code inside one SERIALIZABLE transaction, started
// again when the database picks it as the victim.
//
// Guarantees:  the sales are as if made one after the other.
// Breaks when: never, on a single primary; busy under contention. Whoever does
//              not retry on 1213 or 40001 has refused buyers with stock left.
// Cost:        MySQL turns the read into SELECT ... FOR SHARE: two buyers that
//              have both read cannot both write, one dies as a deadlock victim.
//              The most rounds lost of all here.
// Source:      MySQL 8.0 Reference Manual, 17.7.2.1, "Transaction Isolation
//              Levels", SERIALIZABLE; 17.7.5.3, "How to Minimize and Handle
//              Deadlocks" ("always be prepared to re-issue a transaction").
//
// SQLite's transactions are serializable already: it is transaction there.

package lockstrategy

import (
	"context"
	"database/sql"

	"github.com/oversell/oversell/internal/purchase"
)

// Serializable retries until Settings.Wait is over.
type Serializable struct {
	retrier
	section purchase.Section
}

// NewSerializable needs the database.
func NewSerializable(d Deps) *Serializable {
	return &Serializable{newRetrier(d, maxRounds), d.section("serializable")}
}

// Buy is purchase.Strategy.Buy.
func (s *Serializable) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return s.readAndWrite(ctx, s.section, o, &sql.TxOptions{Isolation: sql.LevelSerializable})
}
