package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/web"
)

// Exit codes of every command.
const (
	exitBroken       = 1   // a verdict breaks its promise
	exitHarness      = 2   // wrong flags, a server missing or down
	exitInconclusive = 3   // the run proved nothing
	exitInterrupted  = 130 // Ctrl-C, as a shell has it
)

// exitError ends the command with a code; its text, if any, is the one line
// that the user reads.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// silenceLibraries turns off what libraries print by themselves. Their switches
// are of the whole process: it is called once, before anything runs.
func silenceLibraries() {
	gin.SetMode(gin.ReleaseMode)
	logging.Disable() // go-redis returns what it would log
}

// run is the whole program: tests call it as main does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:   "shop",
		Short: "A flash-sale shop that you can break on purpose",
		Long: `A flash-sale shop that you can break on purpose, and what shows which lock
strategies hold: a crowd, every order of two buyers' commands, and real faults.

  shop rush                                 every strategy, nothing to install
  shop rush --strategy none,redis --buyers 1000
  shop explore none                         the shortest way to sell a unit twice
  shop verify --engine local                every strategy under every fault
  shop serve                                then open http://127.0.0.1:8080/`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.DisableSuggestions = true // they take more than a line
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		text, _, _ := strings.Cut(err.Error(), ": strconv.") // Go's own words for it
		return fmt.Errorf("%s; %s --help lists the flags", text, c.CommandPath())
	})
	if build, ok := debug.ReadBuildInfo(); ok {
		root.Version = build.Main.Version
		root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	}
	root.SetHelpCommand(helpCommand())
	root.AddCommand(serveCommand(), rushCommand(), exploreCommand(), verifyCommand(), sizeCommand(), benchCommand(), soakCommand(), playCommand(), playChildCommand(), exerciseCommand(), strategiesCommand(), migrateCommand())
	root.SetArgs(joinJSON(args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && strings.HasPrefix(err.Error(), "unknown command") { // cobra's, that it has no type for
		err = fmt.Errorf("%w; shop help lists the commands", err)
	}
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if exit.text != "" {
			fmt.Fprintln(stderr, "shop: "+exit.text)
		}
		return exit.code
	case ctx.Err() != nil && !errors.Is(err, web.ErrUnfinished):
		fmt.Fprintln(stderr, "shop: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(stderr, "shop: "+oneLine(err))
	return exitHarness
}

// helpCommand is cobra's, but an unknown command is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(c *cobra.Command, args []string) error {
			about, _, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// unfinished says in a report why it is not whole.
func unfinished(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "it was interrupted"
	}
	return oneLine(err)
}

// oneLine is an error as one line, however many it joins.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
