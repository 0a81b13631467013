package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/exercises/judge"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/teach/exercise"
)

func exerciseCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "exercise COMMAND",
		Short: "Write the locks yourself, with a check and hints",
		Long: `Write the locks yourself. Each exercise is a small folder with a task and your file. The check runs
your code with one buyer, in every interleaving of a few buyers, and in bursts. It names the step that fails.`,
		Example: `  shop exercise start 1 first
  shop exercise check first`,
		DisableFlagsInUseLine: true,
	}
	onlySubcommands(c)
	setHelp(c, "docs/reference/exercises.md")
	c.AddCommand(exerciseListCommand(), exerciseStartCommand(), exerciseCheckCommand(), exerciseHintCommand(), exerciseSolutionCommand())
	return c
}

// exactly requires n arguments. The parameter `usage` describes these arguments, with an example.
func exactly(n int, usage string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%s needs %s (got %d arguments)", c.Name(), usage, len(args))
		}
		return nil
	}
}

// exerciseNumbers returns the numbers of the exercises, which a shell can complete.
func exerciseNumbers() (numbers []string) {
	all, _ := exercises.All() // after an error there is nothing to complete
	for _, e := range all {
		numbers = append(numbers, strconv.Itoa(e.Number))
	}
	return numbers
}

func exerciseListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the exercises and your progress", Example: "  shop exercise list", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := exercises.All()
			if err != nil {
				return err
			}
			progress, err := exercise.LoadProgress()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), progress.Table(all).Terminal(report.Look{Boxed: true}))
			return err
		},
	}
}

func exerciseStartCommand() *cobra.Command {
	var language string
	c := &cobra.Command{
		Use: "start N DIR", Short: "Copy an exercise into a new folder",
		Long: `Copy an exercise into a new folder: the task, your file, and a module that builds offline.`,
		Example: `  shop exercise start 1 first
  shop exercise start 2 second --language node`,
		ValidArgsFunction: completeFirst(exerciseNumbers),
		Args:              exactly(2, "an exercise and a new folder, for example: shop exercise start 1 first"),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := exercises.Find(args[0])
			if err != nil {
				return err
			}
			if args[1] == "" {
				return errors.New("start needs the name of a new folder, for example: shop exercise start 1 first")
			}
			written, err := exercise.Start(c.Context(), e, args[1], language)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%d. %s: %s\nread %s, change %s, then: shop exercise check %s\n", e.Number, e.Title, strings.Join(written, ", "),
				trial.ShellWord(filepath.Join(args[1], "README.md")), trial.ShellWord(filepath.Join(args[1], e.LearnersFile(language))), trial.ShellWord(args[1]))
			return err
		},
	}
	c.Flags().StringVar(&language, "language", "go", "`language` of your file: go, or for the first exercises node, python")
	return c
}

func exerciseCheckCommand() *cobra.Command {
	var engineName string
	var o output
	c := &cobra.Command{
		Use: "check [DIR]", Short: "Check your code",
		Long: `Compile your code and check it: buyers one by one, every interleaving of a few buyers, a burst in two
processes and, with --engine local, real faults. The check ends at the first failure. Your code runs in
child processes.

Exit codes: 0 passed, 1 failed, 2 not compiled or a server unavailable, 3 nothing proved,
130 interrupted.`,
		Example: `  shop exercise check first
  shop exercise check first --engine local`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("check takes one folder (got %d); without one, it checks the current folder", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkEngine(engineName); err != nil {
				return err
			}
			return checkExercise(c, append(args, ".")[0], engineName == engine.Local, &o)
		},
	}
	c.Flags().StringVar(&engineName, "engine", engine.Embedded, "embedded, or local for real faults on private servers")
	o.register(c)
	return c
}

func checkExercise(c *cobra.Command, dir string, faults bool, o *output) error {
	e, language, err := exercise.In(c.Context(), dir)
	if err != nil {
		return err
	}
	progress, err := exercise.LoadProgress()
	if err != nil {
		return err
	}
	started, shown := time.Now(), newProgress(c.ErrOrStderr())
	told := func(what string) { shown.show("%d. %s: %s", e.Number, e.Title, what) }
	r, err := exercise.Check(c.Context(), e, language, dir, faults, told)
	shown.clear()
	if err != nil {
		return err
	}
	err = o.write(c, r.Document(e, started), func(out io.Writer, _ bool) error {
		fmt.Fprintf(out, "%d. %s\n", e.Number, e.Title)
		r.Print(out)
		if r.Passed() && language == "" && !faults {
			fmt.Fprintf(out, "\nfaults so far: the events of the searches; --engine local injects real ones on private servers: %s\n", strings.Join(e.Faults, ", "))
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch r.Last().Verdict {
	case judge.Wrong:
		return &exitError{exitBroken, ""}
	case judge.Unsure:
		return &exitError{exitInconclusive, "the check found no failure, but its runs prove too little"}
	case judge.Broken:
		return &exitError{exitHarness, "the check itself failed: " + r.Last().Why}
	}
	return progress.Solved(e, language)
}

func exerciseHintCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hint N K", Short: "Show a hint, 1 to 3; the last one says what to write",
		Example: "  shop exercise hint 1 1", Args: exactly(2, "an exercise and a hint from 1 to 3, for example: shop exercise hint 1 1"),
		ValidArgsFunction: completeFirst(exerciseNumbers),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := exercises.Find(args[0])
			if err != nil {
				return err
			}
			k, err := strconv.Atoi(args[1])
			if err != nil || k < 1 || k > len(e.Hints) {
				return fmt.Errorf("the hint must be between 1 and %d (got %q)", len(e.Hints), args[1])
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), e.Hints[k-1])
			return err
		},
	}
}

func exerciseSolutionCommand() *cobra.Command {
	var language string
	c := &cobra.Command{
		Use: "solution N", Short: "Show the reference solution and why it holds",
		Example: "  shop exercise solution 1", Args: exactly(1, "one exercise, for example: shop exercise solution 1"),
		ValidArgsFunction: completeFirst(exerciseNumbers),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := exercises.Find(args[0])
			if err != nil {
				return err
			}
			code, err := exercise.Solution(e, language)
			if err != nil {
				return err
			}
			for name, text := range code {
				fmt.Fprintf(c.OutOrStdout(), "%s\n\n%s\n", name, text)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), e.Why)
			return err
		},
	}
	c.Flags().StringVar(&language, "language", "go", "`language`: go, node or python")
	return c
}
