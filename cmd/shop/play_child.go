package main

import (
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/teach/play/child"
	"github.com/oversell/oversell/internal/teach/play/host"
)

// playChild is the command of a child that is one game.
const playChild = "play-child"

// playChildCommand is what shop serve starts for a game.
func playChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: playChild, Hidden: true, Args: noArguments,
		Short: "Be one game, told by JSON on stdin what to do: for shop serve",
		RunE: func(c *cobra.Command, _ []string) error {
			answers := c.OutOrStdout()
			os.Stdout = os.Stderr // a line that a strategy prints is no answer
			defer explore.OneProcessor(false)()
			return child.Serve(c.Context(), c.InOrStdin(), answers)
		},
	}
}

// newGames are the games of a shop, each in a child of this very program.
func newGames() *host.Host {
	return &host.Host{Command: func() (*exec.Cmd, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(self, playChild)
		cmd.Env = append(os.Environ(), "GOGC=100") // thirty of them, and each has little to do
		return cmd, nil
	}}
}
