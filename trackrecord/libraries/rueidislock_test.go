package libraries

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestRueidis602: while another client has the lock, WithContext tries again and again without a
// pause. https://github.com/redis/rueidis/issues/602
func TestRueidis602(t *testing.T) {
	t.Parallel()
	server := startRedis(t)
	option := rueidislock.LockerOption{KeyMajority: 1, KeyValidity: time.Minute}
	_, unlock, err := locker(t, server, option).WithContext(t.Context(), "apple")
	must(t, err)
	defer unlock()
	waiter := locker(t, server, option)
	waiting, hangUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, _, err := waiter.WithContext(waiting, "apple")
		gone <- err
	}()
	const many = 50
	scripts := 0
	for deadline := time.Now().Add(5 * time.Second); scripts < many && time.Now().Before(deadline); {
		scripts = calls(t, server, "evalsha")
	}
	hangUp()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want that the waiter hung up", err)
	}
	bug{rueidislock.NewLocker, "v1.0.44"}.judge(t, scripts >= many, fmt.Sprintf(
		"one waiter in 5 s or less, while nobody unlocked: %d scripts", scripts))
}

// TestRueidis924: a renewal adds an interval to the previous expiry, without regard to the current
// time. So each late renewal shortens the lease by the delay for good, until none is left.
// https://github.com/redis/rueidis/pull/924
func TestRueidis924(t *testing.T) {
	t.Parallel()
	const validity, interval = 8 * time.Second, 2 * time.Second
	server := startRedis(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	_, unlock, err := locker(t, server, rueidislock.LockerOption{KeyMajority: 1, KeyValidity: validity, ExtendInterval: interval}).
		WithContext(t.Context(), "apple")
	must(t, err)
	defer unlock()
	before, begin := renewed(t, rdb, 0), time.Now()
	must(t, server.Signal(syscall.SIGSTOP))
	time.Sleep(interval + interval/2) // the next renewal is late by half an interval
	must(t, server.Signal(syscall.SIGCONT))
	late := renewed(t, rdb, before)
	after := renewed(t, rdb, late) // this renewal is on time
	moved, passed := after-before, time.Since(begin)
	bug{rueidislock.NewLocker, "v1.0.70"}.judge(t, moved%interval == 0, fmt.Sprintf(
		"two renewals, of which the first was late, moved the expiry by %s; %s went by", moved, passed.Round(100*time.Millisecond)))
}

// renewed waits until the expiry of the lock's key changes, and returns it.
func renewed(t *testing.T, rdb *redis.Client, before time.Duration) time.Duration {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "*apple*").Result()
	must(t, err)
	if len(keys) != 1 {
		t.Fatalf("keys %v; want one", keys)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		at, err := rdb.PExpireTime(t.Context(), keys[0]).Result()
		must(t, err)
		if at < 0 {
			t.Fatal("the lock is gone")
		}
		if before == 0 || at != before {
			return at
		}
	}
	t.Fatal("the lock is not renewed")
	return 0
}

// TestRueidislockClock: the client sets the expiry of a lock by its own clock. If the server's
// clock is ahead by more than the validity, SET NX PXAT answers OK and stores nothing. Every client
// then gets the lock. FallbackSETPX sends a duration instead. We found no public report.
func TestRueidislockClock(t *testing.T) {
	t.Parallel()
	server := redisAhead(t, 100*time.Second)
	if first, second := bothTry(t, server, true); !first || second {
		t.Errorf("with a duration: the first has it %t, the second %t; want true, false", first, second)
	}
	if first, second := bothTry(t, startRedis(t), false); !first || second {
		t.Errorf("with clocks that agree: the first has it %t, the second %t; want true, false", first, second)
	}
	first, second := bothTry(t, server, false)
	bug{rueidislock.NewLocker, ""}.judge(t, first && second, fmt.Sprintf(
		"the server's clock is 100 s ahead, the validity is 60 s; the first client has the lock: %t; so has the second: %t", first, second))
}

func bothTry(t *testing.T, server *localserver.Redis, duration bool) (first, second bool) {
	t.Helper()
	option := rueidislock.LockerOption{
		KeyPrefix: fmt.Sprint("shop-", duration), KeyMajority: 1, KeyValidity: time.Minute,
		FallbackSETPX: duration,
	}
	var had []bool
	for range 2 {
		ctx, unlock, err := locker(t, server, option).TryWithContext(t.Context(), "apple")
		if err == nil {
			defer unlock()
		}
		had = append(had, err == nil && ctx.Err() == nil)
	}
	return had[0], had[1]
}

// redisAhead starts a server whose clock is ahead, with the shim of internal/fault.
func redisAhead(t *testing.T, by time.Duration) *localserver.Redis {
	t.Helper()
	dir := t.TempDir()
	shim, offset := filepath.Join(dir, "clock.so"), filepath.Join(dir, "offset")
	said, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", shim, "../../internal/fault/shim/clock.c").CombinedOutput()
	if err != nil {
		t.Fatalf("the clock's shim needs a C compiler (apt-get install gcc): %v %s", err, said)
	}
	must(t, os.WriteFile(offset, binary.NativeEndian.AppendUint64(nil, uint64(by/time.Second)), 0o600))
	server, err := localserver.StartRedisWith(localservertest.Group(t), []string{"LD_PRELOAD=" + shim, "CLOCK_OFFSET_FILE=" + offset})
	must(t, err)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	now, err := rdb.Time(t.Context()).Result()
	must(t, err)
	if ahead := time.Until(now); ahead < by-2*time.Second {
		t.Fatalf("the server's clock is ahead by %s, want %s", ahead, by)
	}
	return server
}

func locker(t *testing.T, server *localserver.Redis, option rueidislock.LockerOption) rueidislock.Locker {
	t.Helper()
	option.ClientOption = rueidis.ClientOption{InitAddress: []string{server.Addr}}
	// By default, a SET that takes longer than 20 ms fails. WithContext may then wait forever.
	option.TryNextAfter = time.Minute
	l, err := rueidislock.NewLocker(option)
	must(t, err)
	t.Cleanup(l.Close)
	return l
}

func calls(t *testing.T, server *localserver.Redis, command string) int {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	must(t, err)
	parts := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(info)
	if parts == nil {
		return 0
	}
	n, err := strconv.Atoi(parts[1])
	must(t, err)
	return n
}
