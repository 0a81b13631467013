package lockstrategy

import (
	"context"
	"database/sql"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/purchase"
)

// Serializable runs each sale in a transaction at SERIALIZABLE. If the database refuses it, the strategy
// retries until Settings.Wait is over.
//
//   - Summary: the statements of `none` at SERIALIZABLE, retried after error 1213 or 40001
//   - Guarantees: The result is the same as if the sales were made one after another.
//   - Breaks when: never, but under contention many buyers are answered "busy"
//   - How it breaks: Code that does not retry on 1213 or 40001 refuses buyers while units are left.
//   - Cost: Its transactions start again more often than those of any other strategy. MySQL turns the read
//     into SELECT ... FOR SHARE, so if two buyers have both read, they deadlock and one is refused.
//     PostgreSQL lets both write and refuses one (40001).
//   - Source: MySQL 8.0 Reference Manual, 17.7.2.1, "Transaction Isolation Levels", SERIALIZABLE; 17.7.5.3, "How
//     to Minimize and Handle Deadlocks" ("always be prepared to re-issue a transaction"); Ports and Grittner,
//     "Serializable Snapshot Isolation in PostgreSQL", VLDB 2012; PostgreSQL 15 manual, 13.2.3
//   - Notes: SQLite's transactions are already serializable. There the strategy does the same as `transaction`.
type Serializable struct {
	deps    Deps
	retrier waiting.Retrier
	section purchase.Section
}

// NewSerializable returns the strategy. It needs only the database.
func NewSerializable(d Deps) *Serializable {
	return &Serializable{d, waiting.NewRetrier(d, waiting.FewRounds), d.Section("serializable")}
}

// Buy implements purchase.Strategy.
func (s *Serializable) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return readAndWrite(ctx, s.deps, s.retrier, s.section, o, &sql.TxOptions{Isolation: sql.LevelSerializable})
}

func serializableEntry() Entry {
	return Entry{
		Name: "serializable", Family: sqlOnly,
		New: func(d Deps) purchase.Strategy { return NewSerializable(d) },
	}.holds().withPromiseAboveReadCommitted(promise.Played(), verdict.Holds)
}
