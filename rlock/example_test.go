package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/rlock"
)

func open() (client *rlock.Client, done func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	client = rlock.New(rdb)
	return client, func() {
		_ = client.Close()
		_ = rdb.Close()
		server.Close()
	}
}

func Example() {
	client, done := open()
	defer done()
	ctx := context.Background()

	lease, err := client.NewLock("stock").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The work stops when the lock is lost.
	fmt.Println("inside:", lease.Context().Err() == nil)
	// A request that hung up must still release the lock.
	fmt.Println("unlocked:", lease.Unlock(context.WithoutCancel(ctx)) == nil)
	// Output:
	// inside: true
	// unlocked: true
}

func ExampleLock_TryLock() {
	client, done := open()
	defer done()
	ctx := context.Background()
	lock := client.NewLock("stock")

	lease, err := lock.TryLock(ctx, rlock.LeaseTime(time.Minute))
	fmt.Println("first:", err)
	_, err = lock.TryLock(ctx, rlock.Wait(time.Second))
	fmt.Println("second:", errors.Is(err, rlock.ErrNotObtained))
	fmt.Println("unlock:", lease.Unlock(ctx))
	fmt.Println("unlock twice:", errors.Is(lease.Unlock(ctx), rlock.ErrNotHeld))
	// Output:
	// first: <nil>
	// second: true
	// unlock: <nil>
	// unlock twice: true
}

func ExampleWithHolder() {
	client, done := open()
	defer done()
	lock := client.NewLock("stock")

	ctx := rlock.WithHolder(context.Background(), rlock.NewHolder())
	outer, err := lock.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	inner, err := lock.Lock(ctx) // without the holder it would wait forever
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("holds:", inner.HoldCount())
	_ = inner.Unlock(ctx)
	fmt.Println("holds:", outer.HoldCount())
	_ = outer.Unlock(ctx)
	// Output:
	// holds: 2
	// holds: 1
}

func ExampleClient_NewFencedLock() {
	client, done := open()
	defer done()
	ctx := context.Background()
	lock := client.NewFencedLock("stock")

	var seen int64 // the resource keeps the greatest token
	write := func(token int64) bool {
		if token < seen {
			return false
		}
		seen = token
		return true
	}
	paused, _ := lock.Lock(ctx)
	_, _ = lock.ForceUnlock(ctx) // has the effect of an expired lease
	next, _ := lock.Lock(ctx)
	fmt.Println("next:", write(next.Token()))
	fmt.Println("paused:", write(paused.Token()))
	_ = next.Unlock(ctx)
	// Output:
	// next: true
	// paused: false
}

func ExampleMulti() {
	var locks []*rlock.Lock
	for range 3 {
		client, done := open()
		defer done()
		locks = append(locks, client.NewLock("stock"))
	}
	ctx := context.Background()
	multi := rlock.Multi(locks...)

	lease, err := multi.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locks[1].TryLock(ctx)
	fmt.Println("one of them is free:", err == nil)
	fmt.Println("unlock:", lease.Unlock(ctx))
	// Output:
	// one of them is free: false
	// unlock: <nil>
}
