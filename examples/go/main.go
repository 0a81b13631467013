// A small shop. It uses database/sql with go-sql-driver/mysql, and go-redis for the lock.
//
//	shop naive | for-update | redis-lock
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

var (
	errSoldOut = errors.New("sold out")
	errBusy    = errors.New("busy")
)

// release deletes a lock's key if it still has the caller's token.
var release = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

type shop struct {
	db    *sql.DB
	redis *redis.Client
}

// querier is a pool of connections, or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func sell(ctx context.Context, db querier, item int, lock string) error {
	var stock int
	err := db.QueryRowContext(ctx, "SELECT stock FROM items WHERE id = ?"+lock, item).Scan(&stock)
	if errors.Is(err, sql.ErrNoRows) || err == nil && stock < 1 {
		return errSoldOut
	}
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "UPDATE items SET stock = ? WHERE id = ?", stock-1, item); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO orders (item_id, buyer) VALUES (?, ?)", item, uuid.NewString())
	return err
}

func (s *shop) naive(ctx context.Context, item int) error { return sell(ctx, s.db, item, "") }

func (s *shop) forUpdate(ctx context.Context, item int) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // has no effect after a commit
	if err := sell(ctx, tx, item, " FOR UPDATE"); err != nil {
		return err
	}
	return tx.Commit()
}

// redisLock runs the naive sale (read, compute, write) while it holds a lock that expires after five seconds.
func (s *shop) redisLock(ctx context.Context, item int) error {
	key, token := fmt.Sprint("lock:", item), uuid.NewString()
	for range 10 {
		taken, err := s.redis.SetNX(ctx, key, token, 5*time.Second).Result()
		if err != nil {
			return err
		}
		if taken {
			defer release.Eval(context.WithoutCancel(ctx), s.redis, []string{key}, token)
			return s.naive(ctx, item)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errBusy
}

func handler(buy func(ctx context.Context, item int) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /buy", func(w http.ResponseWriter, r *http.Request) {
		item, err := strconv.Atoi(r.FormValue("item"))
		if err != nil {
			http.Error(w, "item is not a number", http.StatusBadRequest)
			return
		}
		switch err := buy(r.Context(), item); {
		case err == nil:
			fmt.Fprintln(w, "bought")
		case errors.Is(err, errSoldOut):
			http.Error(w, err.Error(), http.StatusConflict)
		case errors.Is(err, errBusy):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			log.Print(err)
			http.Error(w, "error", http.StatusInternalServerError)
		}
	})
	return mux
}

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func main() {
	mode := "naive"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	db, err := sql.Open("mysql", "root@tcp(127.0.0.1:"+env("MYSQL_PORT", "3306")+")/shop?interpolateParams=true")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	if err := db.Ping(); err != nil { // connect before the first buyer comes
		log.Fatal(err)
	}
	s := &shop{db: db, redis: redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + env("REDIS_PORT", "6379")})}

	buy := map[string]func(context.Context, int) error{
		"naive": s.naive, "for-update": s.forUpdate, "redis-lock": s.redisLock,
	}[mode]
	if buy == nil {
		log.Fatalf("no mode %s: naive, for-update or redis-lock", mode)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", handler(buy))) // #nosec G114 -- an example, for buyers of this machine
}
