package gates

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/explore/wire"
)

// A Pulse knows whether anything has moved. It counts the changes at the gates (messages, new and ended connections)
// and everything that is in transit. It also knows whether the programs have received something since they were last
// idle. A check that nothing moves (a standstill) is valid only if Seq has not risen meanwhile, see MarkStill.
type Pulse struct {
	busy atomic.Int64
	seq  atomic.Int64 // rises with each change at the gates
	own  atomic.Int64 // the part of seq that belongs to ignored commands
	bell *bell        // rings when seq rises, and when busy falls to 0

	// Since returns the time since a moment, without the time in which this process got no processor. All time limits for
	// programs use it, since a busy machine is not the program's fault. A test may replace it.
	Since func(time.Time) time.Duration

	mu       *sync.Mutex  // guards the fields below
	still    bool         // the programs were found idle, and have received nothing since
	last     time.Time    // when seq rose last
	handed   *wire.Socket // the socket that was written to last; nil if something has come since
	handedTo int          // the buyer whose program has the socket; 0: all buyers
}

// Seq returns a number that rises with each change at the gates.
func (p *Pulse) Seq() int64 { return p.seq.Load() }

// Ignored returns the part of Seq that belongs to ignored commands.
func (p *Pulse) Ignored() int64 { return p.own.Load() }

// Moves returns Seq without the part that belongs to ignored commands.
func (p *Pulse) Moves() int64 { return p.Seq() - p.Ignored() }

// Busy reports whether anything is in transit.
func (p *Pulse) Busy() bool { return p.busy.Load() != 0 }

// Wait returns when Seq rises, or after the time d. If Seq has risen since the last call, it returns at once. It may
// also return early. If d is not positive, it does not wait.
func (p *Pulse) Wait(d time.Duration) { p.bell.wait(d) }

// Last returns the time at which Seq last rose.
func (p *Pulse) Last() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Handed returns the socket that was written to last, and the buyer whose program has the socket (0: all buyers). If
// something has come since, the socket is nil.
func (p *Pulse) Handed() (s *wire.Socket, to int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.handed, p.handedTo
}

// Hand records a write to a socket of a buyer's program. If the socket is nil, a buyer has received its answer.
func (p *Pulse) Hand(s *wire.Socket, to int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handed, p.handedTo = s, to
	p.happened()
}

// Still reports whether the programs are idle: MarkStill returned true, and nothing has come or was delivered since.
func (p *Pulse) Still() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.still
}

// MarkStill records that the programs are idle, which is true until Seq rises. If something is in transit, or Seq is no
// longer seq, it returns false.
func (p *Pulse) MarkStill(seq int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.still = !p.Busy() && p.Seq() == seq
	return p.still
}

// Wake records that a program may have continued by itself.
func (p *Pulse) Wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.still = false
}

// add adds n to the number of messages in transit, which Busy checks.
func (p *Pulse) add(n int64) {
	if p.busy.Add(n) == 0 {
		p.bell.ring()
	}
}

// counts records a change that no program can notice.
func (p *Pulse) counts() {
	p.seq.Add(1)
	p.last = time.Now()
	p.bell.ring()
}

// happened records a change that a program may notice.
func (p *Pulse) happened() {
	p.still = false
	p.counts()
}

// ignored records that the last change belongs to an ignored command.
func (p *Pulse) ignored() { p.own.Add(1) }
