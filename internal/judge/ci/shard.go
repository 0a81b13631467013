package ci

import (
	"fmt"
	"strconv"
	"strings"
)

// A Shard is one part of the checks, so that CI jobs can run parts in parallel. A check is in exactly one part.
type Shard struct {
	Index, Count int // Index counts from 1; both 0: all checks
}

// ParseShard parses a text such as "1/3": the first of three parts.
func ParseShard(text string) (Shard, error) {
	index, count, found := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(index)
	n, err2 := strconv.Atoi(count)
	if !found || err1 != nil || err2 != nil || i < 1 || i > n {
		return Shard{}, fmt.Errorf("--shard must be a part such as 1/3, from 1 to the number of parts (got %q)", text)
	}
	return Shard{i, n}, nil
}

// String returns a text such as "1/3", or "" for all checks.
func (s Shard) String() string {
	if s.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// of returns every Count-th job, beginning with the Index-th.
func (s Shard) of(jobs []job) (part []job) {
	if s.Count == 0 {
		return jobs
	}
	for i := s.Index - 1; i < len(jobs); i += s.Count {
		part = append(part, jobs[i])
	}
	return part
}
