// Command shop sells a product over HTTP under a lock strategy of the caller's
// choice, and shows by a rush which strategies hold. `shop help` lists what it
// can do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/oversell/oversell/internal/explore/process"
)

func main() {
	process.Keep() // where this is the keeper of an explored program, it ends here
	silenceLibraries()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
