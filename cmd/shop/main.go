// Command shop sells a product over HTTP with a lock strategy that the caller chooses, and tests which
// strategies never oversell. `shop help` lists the commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/oversell/oversell/internal/explore/process"
)

func main() {
	process.Keep() // does not return in the helper process of an explored program
	silenceLibraries()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
