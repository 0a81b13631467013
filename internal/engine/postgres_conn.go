package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgresConnector opens connections on which the end of a context never interrupts a COMMIT.
type postgresConnector struct {
	driver.Connector
	patience time.Duration // maximum wait for the answer to a COMMIT; 0: unlimited
}

func newPostgresConnector(c *pgx.ConnConfig, patience time.Duration) postgresConnector {
	c = c.Copy()
	c.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" && n.Code == warned {
			conn.CustomData()[warned] = n.Message
		}
	}
	utc := stdlib.OptionAfterConnect(func(_ context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
		// Behind a pooler, pgx must know the type of each argument. The released program is built without pgx's own
		// list of 600 types (tag nopgxregisterdefaulttypes).
		for name, values := range scalars {
			for _, value := range values {
				conn.TypeMap().RegisterDefaultPgType(value, name)
			}
		}
		return nil
	})
	return postgresConnector{stdlib.GetConnector(*c, utc, stdlib.OptionShouldPing(wasIdle)), patience}
}

// scalars maps each PostgreSQL type to the Go types of arguments that pgx must send as that type. pgx treats
// pointers and named types like their underlying types.
var scalars = map[string][]any{
	"int2": {int16(0)}, "int4": {int32(0)}, "int8": {0, int64(0), int8(0), uint8(0), uint16(0), uint32(0)}, "numeric": {uint(0), uint64(0)},
	"float4": {float32(0)}, "float8": {0.0}, "bool": {false}, "text": {""}, "bytea": {[]byte(nil)},
	"timestamptz": {time.Time{}}, "interval": {time.Duration(0)}, "json": {json.RawMessage(nil)},
}

// wasIdle reports whether a pooled connection must be checked before use: after a second without use. A new
// connection needs no check; its idle time counts from the year 1.
func wasIdle(_ context.Context, p stdlib.ShouldPingParams) bool {
	return p.IdleDuration > time.Second && p.IdleDuration < 24*365*time.Hour
}

// warned is the code of warnings without a code of their own. One of these warnings says that COMMIT stopped
// waiting for a synchronous replica (syncrep.c, SyncRepWaitForLSN). The answer is still COMMIT.
const warned = "01000"

func (c postgresConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &postgresConn{inner.(*stdlib.Conn), c.patience}, nil
}

// postgresConn is pgx's connection with its own COMMIT and ROLLBACK. pgx sends them under the context of BEGIN,
// so a buyer that gives up would interrupt a COMMIT. The shop would then wrongly answer that it sold nothing.
type postgresConn struct {
	*stdlib.Conn
	patience time.Duration
}

// BeginTx implements driver.ConnBeginTx.
func (c *postgresConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	levels := map[sql.IsolationLevel]pgx.TxIsoLevel{
		sql.LevelDefault: "", sql.LevelReadCommitted: pgx.ReadCommitted, sql.LevelRepeatableRead: pgx.RepeatableRead, sql.LevelSerializable: pgx.Serializable,
	}
	level, known := levels[sql.IsolationLevel(o.Isolation)]
	if !known {
		return nil, fmt.Errorf("isolation level %v is not known", o.Isolation)
	}
	options := pgx.TxOptions{IsoLevel: level}
	if o.ReadOnly {
		options.AccessMode = pgx.ReadOnly
	}
	conn := c.Conn.Conn()
	if conn.IsClosed() {
		return nil, driver.ErrBadConn
	}
	tx, err := conn.BeginTx(ctx, options)
	var said *pgconn.PgError
	switch {
	case err == nil:
	case ctx.Err() == nil && !errors.As(err, &said):
		return nil, driver.ErrBadConn // the idle connection was broken and BEGIN had no effect, so database/sql can use another connection
	default:
		return nil, err
	}
	return postgresTx{tx, c.patience}, nil
}

// Greeted returns the id of the server process that opened the connection. Behind a pooler, other processes
// execute the statements.
func (c *postgresConn) Greeted() uint32 { return c.Conn.Conn().PgConn().PID() }

// IsValid implements driver.Validator.
func (c *postgresConn) IsValid() bool { return !c.Conn.Conn().IsClosed() }

type postgresTx struct {
	tx       pgx.Tx
	patience time.Duration
}

// errNoAnswer does not wrap the error of a context. That error would mean that COMMIT was never sent.
var errNoAnswer = errors.New("the server did not answer in time")

func (t postgresTx) Commit() error {
	ctx, cancel := t.bounded()
	defer cancel()
	said := t.tx.Conn().PgConn().CustomData()
	delete(said, warned)
	err := t.tx.Commit(ctx)
	if err != nil && ctx.Err() != nil {
		return errNoAnswer
	}
	if warning, ok := said[warned].(string); ok && err == nil {
		return fmt.Errorf("the server warned: %s", warning)
	}
	return err
}

func (t postgresTx) Rollback() error {
	ctx, cancel := t.bounded()
	defer cancel()
	return t.tx.Rollback(ctx)
}

func (t postgresTx) bounded() (context.Context, context.CancelFunc) {
	if t.patience == 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), t.patience)
}
