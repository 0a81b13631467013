package main

import (
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/teach/play/child"
	"github.com/oversell/oversell/internal/teach/play/host"
)

// playChild is the hidden command of a child process that runs one game.
const playChild = "play-child"

// playChildCommand returns the hidden command that `shop serve` starts for a game.
func playChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: playChild, Hidden: true, Args: noArguments,
		Short: "Run one game for shop serve, controlled by JSON on standard input",
		RunE: func(c *cobra.Command, _ []string) error {
			answers := c.OutOrStdout()
			os.Stdout = os.Stderr // standard output must carry only answers, and nothing that a strategy prints
			defer explore.OneProcessor(false)()
			return child.Serve(c.Context(), c.InOrStdin(), answers)
		},
	}
}

// newGames returns a host that runs each game in a child process of this program.
func newGames() *host.Host {
	return &host.Host{Command: func() (*exec.Cmd, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(self, playChild)
		cmd.Env = append(os.Environ(), "GOGC=100") // explore.OneProcessor would otherwise make collections rarer, and up to 30 children would use more memory
		return cmd, nil
	}}
}
