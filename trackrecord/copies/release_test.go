package copies

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// TestShedLock2583: unlock deletes the key without checking its owner. By then, the key belongs to
// the next client. https://github.com/lukas-krecan/ShedLock/issues/2583
func TestShedLock2583(t *testing.T) {
	foreign(t, "DEL", false, func(ctx context.Context, d lockstrategy.Deps, key, _ string) error {
		return d.Redis.Del(ctx, key).Err()
	})
}

// TestLeshan837: release compares the value and deletes the key in two commands. In between, the
// lock can expire and pass to the next client. https://github.com/eclipse-leshan/leshan/pull/837
func TestLeshan837(t *testing.T) {
	foreign(t, "GET, compare, DEL", true, func(ctx context.Context, d lockstrategy.Deps, key, token string) error {
		held, err := d.Redis.Get(ctx, key).Result()
		if err != nil || held != token {
			return err
		}
		return d.Redis.Del(ctx, key).Err()
	})
}

// foreign explores a SET NX PX lock with the given release and with a correct one, while leases
// expire. Both oversell: a lease does not replace a fencing token.
func foreign(t *testing.T, name string, waits bool, release func(ctx context.Context, d lockstrategy.Deps, key, token string) error) {
	t.Helper()
	config := explore.Config{Events: []explore.Event{explore.Expire}, Bound: 2}
	control := search(t, "compare and delete in a script", config, func(d lockstrategy.Deps) purchase.Strategy {
		return keyed{d, waits, func(ctx context.Context, d lockstrategy.Deps, key, token string) error {
			return deleteOwn.Run(ctx, d.Redis, []string{key}, token).Err()
		}}
	})
	result := search(t, name, config, func(d lockstrategy.Deps) purchase.Strategy { return keyed{d, waits, release} })
	if control.Foreign > 0 || result.Foreign == 0 {
		t.Fatalf("another's lock is freed in %d schedules, with a script in %d; want some and none", result.Foreign, control.Foreign)
	}
	show(t, result.ForeignWitness)
}

var deleteOwn = goredis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

// keyed is a lock on one key. A buyer that does not get it tries again or, like a job of ShedLock,
// is skipped.
type keyed struct {
	deps    lockstrategy.Deps
	waits   bool
	release func(ctx context.Context, d lockstrategy.Deps, key, token string) error
}

func (s keyed) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	token := rand.Text()
	for taken := false; !taken; {
		if taken, err = s.deps.Redis.SetNX(ctx, "copy:lock", token, time.Hour).Result(); err != nil {
			return receipt, err
		}
		if !taken && s.waits {
			s.deps.Pause(ctx, 10*time.Millisecond)
		}
		if !taken && (!s.waits || ctx.Err() != nil) {
			return receipt, purchase.ErrBusy
		}
	}
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) (err error) {
		receipt, err = section(ctx, s.deps, tx, o)
		return err
	})
	freed := s.release(context.WithoutCancel(ctx), s.deps, "copy:lock", token)
	if errors.Is(freed, goredis.Nil) {
		freed = nil // it has expired
	}
	return receipt, errors.Join(err, freed)
}
