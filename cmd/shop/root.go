package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/version"
	"github.com/oversell/oversell/internal/web"
)

// Exit codes of every command.
const (
	exitBroken       = 1   // a verdict breaks its promise
	exitHarness      = 2   // a flag is wrong, or a server is unavailable
	exitInconclusive = 3   // the run proved nothing
	exitInterrupted  = 130 // Ctrl-C: 128 + SIGINT, as in a shell
)

// exitError ends the command with an exit code. Its text, if not "", is the only line that the user reads.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// silenceLibraries turns off the libraries' own output. The settings apply to the whole process, so it must
// run once, before everything else.
func silenceLibraries() {
	gin.SetMode(gin.ReleaseMode)
	logging.Disable() // go-redis also returns the errors that it would log
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "shop COMMAND",
		Short: "A flash-sale shop that you can break on purpose",
		Long: `Find out whether a shop sells its last unit twice: your own, or this one.
Exit codes: 0 success, 1 a break, 2 error, 3 nothing proved, 130 interrupted.`,
		Example: `  shop explore --app oversell.yaml
  shop rush --strategy none,redis,for-update`,
		SilenceUsage:          true,
		SilenceErrors:         true,
		DisableFlagsInUseLine: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	onlySubcommands(root)
	root.SetFlagErrorFunc(flagError)
	all := false
	root.PersistentFlags().BoolFunc(helpAll, "help with all flags", func(string) error {
		all = true
		return pflag.ErrHelp
	})
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { printHelp(c.OutOrStdout(), c, all) })
	root.Version = version.Current().String() // --version prints what `shop version` prints
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(helpCommand())
	root.AddCommand(serveCommand(), rushCommand(), initCommand(), scanCommand(), exploreCommand(), verifyCommand(), ciCommand(), benchCommand(), playCommand(), playChildCommand(), exerciseCommand(), strategiesCommand(), migrateCommand(), versionCommand(), faultsTopic())
	root.AddCommand(&cobra.Command{Use: "soak", Hidden: true, DisableFlagParsing: true, RunE: func(*cobra.Command, []string) error { return errors.New("use shop rush --for 1h instead of shop soak") }})
	setHelp(root, "docs/README.md")
	completeFlags(root)
	return root
}

// run runs the program and returns its exit code. Tests call it as main does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(joinJSON(args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
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

// unfinished says why a report is incomplete, after the error err.
func unfinished(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "it was interrupted"
	}
	return oneLine(err)
}

// oneLine returns the text of an error in one line, also for joined errors.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
