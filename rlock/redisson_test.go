package rlock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// javaWatchdog is the lockWatchdogTimeout of the Java side, and the WatchdogTimeout of ours. Redisson
// renews after a third of it.
const javaWatchdog = 3 * time.Second

// A javaProcess runs redisson/Locks.java, which calls the real Redisson.
type javaProcess struct {
	input io.Writer

	mu      sync.Mutex
	answers []chan string // answers by number of the call
}

// startJava gets the libraries of pom.xml through Maven and starts the Java program.
func startJava(t *testing.T, redisAddress string) *javaProcess {
	t.Helper()
	classpath := filepath.Join(t.TempDir(), "classpath")
	ctx := context.WithoutCancel(t.Context()) // Cleanup closes the program's input, which ends the program
	if out, err := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", "redisson/pom.xml", "dependency:build-classpath",
		"-Dmdep.outputFile="+classpath).CombinedOutput(); err != nil {
		t.Fatalf("mvn: %v\n%s\ntools/install-servers.sh soak installs Maven and Java", err, out)
	}
	jars, err := os.ReadFile(classpath)
	require.NoError(t, err)
	program := exec.CommandContext(ctx, "java", "-cp", strings.TrimSpace(string(jars)), "redisson/Locks.java",
		"redis://"+redisAddress, fmt.Sprint(javaWatchdog.Milliseconds()))
	program.Stderr = t.Output()
	input, err := program.StdinPipe()
	require.NoError(t, err)
	output, err := program.StdoutPipe()
	require.NoError(t, err)
	started := make(chan string, 1)
	j := &javaProcess{input: input, answers: []chan string{started}}
	require.NoError(t, program.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			number, answer, _ := strings.Cut(lines.Text(), " ")
			n, _ := strconv.Atoi(number)
			j.mu.Lock()
			j.answers[n] <- answer
			j.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = input.Close()
		<-read
		expect.NoError(t, program.Wait(), "java")
	})
	receive(t, "Java started", started)
	return j
}

// A javaLock is a lock of Redisson: "plain", "fair", or "plain" with the call token for a fenced lock.
type javaLock struct {
	*javaProcess
	kind, name string
}

// call sends a call of a Java thread, and returns its answer as it comes.
func (l javaLock) call(t *testing.T, thread, call string, d time.Duration) <-chan string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	number := len(l.answers)
	answer := make(chan string, 1)
	l.answers = append(l.answers, answer)
	require.NoError(t, expect.ErrorOf(fmt.Fprintln(l.input, number, thread, l.kind, l.name, call, d.Milliseconds())))
	return answer
}

// must sends a call and fails the test unless the answer is want.
func (l javaLock) must(t *testing.T, thread, call string, d time.Duration, want string) {
	t.Helper()
	if got := receive(t, "Java: "+call, l.call(t, thread, call, d)); got != want {
		t.Fatalf("Java: %s: %q, want %q", call, got, want)
	}
}

const (
	ok         = "ok "
	byWatchdog = -time.Millisecond // a lease in a Java call: the watchdog renews it
)

// scripts returns how many scripts the server has run. Each attempt to take a lock is a script, in
// rlock and in Redisson.
func scripts(t *testing.T, b *bench) (n int) {
	t.Helper()
	info, err := b.rdb.Info(within(t), "commandstats").Result()
	require.NoError(t, err)
	for _, calls := range regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		more, _ := strconv.Atoi(calls[1])
		n += more
	}
	return n
}

// wakesByMessage releases the lock after a waiter has subscribed. The lease lasts an hour, and the
// waiter makes no attempt between its subscription and the release. So only the message can have woken
// it.
func wakesByMessage(t *testing.T, b *bench, name, channel string, release func(), granted func()) {
	t.Helper()
	ctx := within(t)
	until(t, "subscribed", func() bool { return b.rdb.PubSubNumSub(ctx, channel).Val()[channel] == 1 })
	message := b.rdb.Subscribe(ctx, channel)
	defer message.Close()
	require.NoError(t, expect.ErrorOf(message.Receive(ctx)))
	// The waiter's last attempt follows its subscription. Then 500 answers of the server in a row show
	// no further attempt.
	before, quiet := scripts(t, b), 0
	until(t, "the waiter makes no attempt", func() bool {
		now := scripts(t, b)
		if quiet++; now != before {
			before, quiet = now, 0
		}
		return quiet == 500
	})
	if ttl := b.rdb.PTTL(ctx, name).Val(); ttl < time.Hour/2 {
		t.Fatalf("TTL %v: the waiter may wake at its end", ttl)
	}
	release()
	granted()
	if got, err := message.ReceiveMessage(ctx); err != nil || got.Payload != "0" {
		t.Errorf("message %v (%v), want 0", got, err)
	}
}

// TestRedisson: the real Redisson and rlock exclude and wake each other, with every kind of lock that
// both implement. redisson/pom.xml names the version.
func TestRedisson(t *testing.T) {
	tier.Soak(t, "needs Maven Central; TestWire and TestFairWire check the keys and messages")
	b, _ := ownServer(t)
	java := startJava(t, b.addr)
	ctx, cancel := context.WithTimeout(t.Context(), 5*testTimeout)
	defer cancel()
	field := java.fieldOf(t, b, "one")
	observer, seen := events()
	c := b.client(t, observer, WatchdogTimeout(javaWatchdog))

	for kind, newLock := range map[string]maker{"plain": (*Client).NewLock, "fair": (*Client).NewFairLock} {
		name := "redisson-" + kind
		lock, theirs := newLock(c, name), javaLock{java, kind, name}
		holder := NewHolder()
		asHolder := WithHolder(ctx, holder)
		channelOf := func(field string) string {
			if kind == "fair" {
				return lock.keys.waiter(field)
			}
			return lock.keys.channel
		}

		t.Run(kind+"/Java holds, Go waits", func(t *testing.T) {
			theirs.must(t, "one", "lock", time.Hour, ok)
			theirs.must(t, "one", "lock", time.Hour, ok)
			theirs.must(t, "one", "holds", 0, "ok 2")
			if lease, err := lock.TryLock(ctx); !errors.Is(err, ErrNotObtained) {
				t.Fatalf("TryLock: %v, %v, want ErrNotObtained", lease, err)
			}
			granted := lineUp(asHolder, t, lock, seen)
			theirs.must(t, "one", "unlock", 0, ok)
			if n := b.rdb.HLen(ctx, name).Val(); n != 1 || len(granted) != 0 {
				t.Fatalf("%d fields, %d grants after one of two unlocks", n, len(granted))
			}
			wakesByMessage(t, b, name, channelOf(holder.field(c)), func() { theirs.must(t, "one", "unlock", 0, ok) }, func() {
				mustUnlock(t, receive(t, "granted", granted))
			})
			want := "failed java.lang.IllegalMonitorStateException: attempt to unlock lock, not locked by current thread by node id: " +
				strings.Replace(field, ":", " thread-id: ", 1)
			if kind == "fair" { // RedissonFairLock answers "unlocked" when no holder has the lock
				want = ok
			}
			theirs.must(t, "one", "unlock", 0, want)
		})

		t.Run(kind+"/Go holds, Java waits", func(t *testing.T) {
			outer := mustLock(t, lock, asHolder, LeaseTime(time.Hour))
			inner := mustLock(t, lock, asHolder, LeaseTime(time.Hour))
			theirs.must(t, "two", "try", 0, "ok false")
			granted := theirs.call(t, "one", "lock", time.Hour)
			mustUnlock(t, inner)
			wakesByMessage(t, b, name, channelOf(field), func() { mustUnlock(t, outer) }, func() {
				expect.Equal(t, receive(t, "Java has the lock", granted), ok, "Java")
			})
			if held, err := lock.IsLocked(ctx); !held || err != nil {
				t.Errorf("IsLocked: %v, %v, want that Java has it", held, err)
			}
			theirs.must(t, "one", "unlock", 0, ok)
		})

		t.Run(kind+"/a lease expires", func(t *testing.T) {
			const short = 200 * time.Millisecond
			theirs.must(t, "one", "lock", short, ok)
			mustUnlock(t, mustLock(t, lock, ctx))
			lease := mustLock(t, lock, ctx, LeaseTime(short))
			theirs.must(t, "one", "lock", time.Hour, ok)
			expect.ErrorIs(t, lease.Unlock(ctx), ErrNotHeld, "Unlock after the lease")
			theirs.must(t, "one", "unlock", 0, ok) // our late Unlock has not released it
		})

		t.Run(kind+"/watchdogs", func(t *testing.T) {
			ttlRises := func() {
				t.Helper()
				last := b.rdb.PTTL(ctx, name).Val()
				until(t, "renewed twice", func() bool {
					ttl := b.rdb.PTTL(ctx, name).Val()
					if ttl <= 0 {
						t.Fatalf("TTL %v: it expired", ttl)
					}
					risen := ttl > last
					last = ttl
					return risen
				})
			}
			theirs.must(t, "one", "lock", byWatchdog, ok)
			ttlRises()
			ttlRises()
			if lease, err := lock.TryLock(ctx); !errors.Is(err, ErrNotObtained) {
				t.Fatalf("TryLock: %v, %v, want that Java still has it", lease, err)
			}
			theirs.must(t, "one", "unlock", 0, ok)
			lease := mustLock(t, lock, ctx)
			ttlRises()
			ttlRises()
			theirs.must(t, "one", "try", 0, "ok false")
			mustUnlock(t, lease)
			theirs.must(t, "one", "try", 0, "ok true")
			theirs.must(t, "one", "unlock", 0, ok)
		})
	}

	t.Run("fair/one queue", func(t *testing.T) {
		lock, theirs := c.NewFairLock("redisson-queue"), javaLock{java, "fair", "redisson-queue"}
		queued := func(n int64) {
			t.Helper()
			until(t, "queued", func() bool { return b.rdb.LLen(ctx, lock.keys.queue).Val() == n })
		}
		first := mustLock(t, lock, ctx, LeaseTime(time.Hour))
		javaFirst := theirs.call(t, "one", "lock", time.Hour)
		queued(1)
		goSecond := lineUp(ctx, t, lock, seen)
		queued(2)
		javaThird := theirs.call(t, "two", "lock", time.Hour)
		queued(3)
		mustUnlock(t, first)
		if receive(t, "Java is first", javaFirst) != ok || len(goSecond)+len(javaThird) > 0 {
			t.Fatal("a later waiter has the lock too")
		}
		theirs.must(t, "one", "unlock", 0, ok)
		second := receive(t, "Go is second", goSecond)
		if len(javaThird) > 0 {
			t.Fatal("the third has the lock too")
		}
		mustUnlock(t, second)
		if receive(t, "Java is third", javaThird) != ok {
			t.Fatal("Java failed")
		}
		theirs.must(t, "two", "unlock", 0, ok)
		expect.Equal(t, b.rdb.Exists(ctx, lock.keys.lock, lock.keys.queue, lock.keys.timeouts).Val(), 0, "keys left behind")
	})

	t.Run("fenced", func(t *testing.T) {
		lock, theirs := c.NewFencedLock("redisson-fenced"), javaLock{java, "plain", "redisson-fenced"}
		for token := int64(1); token < 5; token += 2 {
			theirs.must(t, "one", "token", time.Hour, fmt.Sprint("ok ", token))
			theirs.must(t, "one", "unlock", 0, ok)
			lease := mustLock(t, lock, ctx)
			expect.Equal(t, lease.Token(), token+1, "token after Java's", token)
			mustUnlock(t, lease)
		}
	})

	t.Run("hand-overs end for Java", func(t *testing.T) {
		busy, stop := context.WithCancel(ctx)
		var workers sync.WaitGroup
		defer workers.Wait()
		defer stop()
		name := "redisson-busy"
		for range 8 {
			workers.Go(func() {
				for busy.Err() == nil {
					section(ctx, t, c.NewLock(name), func(*Lease) {})
				}
			})
		}
		for range 5 {
			javaLock{java, "plain", name}.must(t, "one", "lock", time.Hour, ok)
			javaLock{java, "plain", name}.must(t, "one", "unlock", 0, ok)
		}
	})
}

// fieldOf makes a Java thread take a lock, and returns the holder's field in it.
func (j *javaProcess) fieldOf(t *testing.T, b *bench, thread string) string {
	t.Helper()
	l := javaLock{j, "plain", "redisson-field"}
	l.must(t, thread, "lock", time.Hour, ok)
	fields := b.rdb.HKeys(within(t), l.name).Val()
	l.must(t, thread, "unlock", 0, ok)
	if len(fields) != 1 {
		t.Fatalf("fields %q, want one", fields)
	}
	return fields[0]
}

// TestRedissonVersion: docs/reference/track-record.md names the version that TestRedisson runs.
func TestRedissonVersion(t *testing.T) {
	pom, err := os.ReadFile("redisson/pom.xml")
	require.NoError(t, err)
	page, err := os.ReadFile("../docs/reference/track-record.md")
	require.NoError(t, err)
	version := regexp.MustCompile(`<artifactId>redisson</artifactId>\s*<version>([\d.]+\.[\d.]+)<`).FindSubmatch(pom)
	if version == nil || !strings.Contains(string(page), "Redisson "+string(version[1])) {
		t.Errorf("docs/reference/track-record.md does not name the version %q of rlock/redisson/pom.xml", version)
	}
}
