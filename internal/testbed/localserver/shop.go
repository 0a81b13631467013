package localserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Listening begins the one line on stdout by which a shop says where it serves.
const Listening = "listening on "

// A Shop is a running `shop serve`.
type Shop struct {
	*Process
	URL string
}

// StartShop starts cmd and returns when it serves. What it prints after that
// line goes to rest, line by line in a goroutine of its own, until it ends; nil
// throws it away.
func StartShop(ctx context.Context, g *Group, cmd *exec.Cmd, rest func(line []byte)) (*Shop, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = in
	process, err := g.Start(cmd)
	_ = in.Close() // the child has its own
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	first := make(chan string, 1)
	go func() {
		defer out.Close()
		lines := bufio.NewReader(out)
		line, err := lines.ReadBytes('\n') // none when the child ended without one
		first <- strings.TrimSpace(string(line))
		for err == nil {
			if line, err = lines.ReadBytes('\n'); err == nil && rest != nil {
				rest(line)
			}
		}
	}()
	select {
	case line := <-first:
		if url, ok := strings.CutPrefix(line, Listening); ok {
			return &Shop{process, url}, nil
		}
		err = fmt.Errorf("a shop process did not start: %q", line)
	case <-time.After(time.Minute):
		err = errors.New("a shop process did not serve within a minute")
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, process.Kill())
}
