package terminal

import (
	"context"
	"io"
)

// Screen is still plain.
func (s *Session) Screen(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.Plain(ctx, in, out, "> ")
}
