package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A part is an executed statement of a batch, with the offset of its end in the batch.
type part struct {
	says         said
	line         string
	whole        func() string
	raw, expects int
}

// mostParts is the number of statements above which a pipeline stays one command.
const mostParts = 16

// pipeline makes one command of each statement of a batch, if the batch has several and one of them
// reads rows without a lock. So the explorer can run another connection's write between two statements. A
// Flush after each statement makes the server answer it. The Sync that commits an implicit transaction
// is a command, too. Any other batch stays whole.
func (s *state) pipeline(b *batch) []*batch {
	steps, reads, begins := 0, false, s.status != 'I' || s.implicit
	for _, one := range b.parts {
		if one.says.Effect != schedule.Local {
			steps++
		}
		reads = reads || one.says.Reads
		begins = begins || one.says.Verb == "BEGIN" || one.says.Verb == "START"
	}
	if !b.synced || !b.extended || b.copied || !reads || steps < 2 || steps > mostParts || len(b.parts) != b.executes {
		return []*batch{b}
	}
	flush, _ := (&pgproto3.Flush{}).Encode(nil)
	var all []*batch
	one := newBatch()
	raw, expects := 0, 0
	for i, p := range b.parts {
		one.executed(p.says, p.line, p.whole)
		last := i == len(b.parts)-1
		if p.says.Effect == schedule.Local && !last {
			continue // a BEGIN belongs to the statement that follows
		}
		one.extended, one.piece = true, true
		one.raw, one.expects = slices.Clone(b.raw[raw:p.raw]), slices.Clone(b.expects[expects:p.expects])
		raw, expects = p.raw, p.expects
		all = append(all, one)
		if last && begins {
			break
		}
		one.raw = append(one.raw, flush...)
		one = newBatch()
	}
	one.extended, one.synced = true, true
	one.raw, one.expects = append(one.raw, b.raw[raw:]...), append(one.expects, b.expects[expects:]...)
	if !begins {
		all = append(all, one)
	}
	return all
}
