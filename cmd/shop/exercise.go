package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
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
		Use:   "exercise",
		Short: "Write the locks yourself: a task, a check that says what goes wrong, hints",
		Long: `Exercises on your own files. They start with a sale that one statement repairs,
and end with a lock over two stores. start copies a small module. check holds
your code to every order of a few buyers' commands, among them those in which a
lease runs out or a buyer crashes, and to a crowd; with --engine local also to
real faults on private servers. It says in which step what went wrong.

docs/reference/exercises.md has more.`,
		Example: `  shop exercise list
  shop exercise start 1 first
  shop exercise check first
  shop exercise hint 1 1
  shop exercise solution 1
  shop exercise start 1 first-py --language python`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("exercise has no %q; there are list, start, check, hint, solution", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(exerciseListCommand(), exerciseStartCommand(), exerciseCheckCommand(), exerciseHintCommand(), exerciseSolutionCommand())
	return c
}

// exactly refuses other than so many arguments, by the usage.
func exactly(n int, usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return errors.New("give " + usage)
		}
		return nil
	}
}

func exerciseListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "The exercises, and which you have solved", Example: "  shop exercise list", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := exercises.All()
			if err != nil {
				return err
			}
			progress, err := exercise.LoadProgress()
			if err != nil {
				return err
			}
			t := report.Table{Columns: report.Columns("", "EXERCISE", "MINUTES", "SOLVED")}
			t.Columns[0].Numbers, t.Columns[2].Numbers = true, true
			for _, e := range all {
				title := e.Title
				if languages := e.LanguageNames(); len(languages) > 0 {
					title += " (also for " + strings.Join(languages, ", ") + ")"
				}
				t.Rows = append(t.Rows, report.Texts(fmt.Sprint(e.Number), title, fmt.Sprint(e.Minutes), fmt.Sprint(progress.On(e))))
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), t.Terminal(report.Look{Boxed: true}))
			return err
		},
	}
}

func exerciseStartCommand() *cobra.Command {
	var language string
	c := &cobra.Command{
		Use: "start N DIR", Short: "Copy an exercise into a new folder",
		Long: `Copy an exercise into a new folder: the task, your file, and a module that is
built from the module cache, offline.`,
		Example: `  shop exercise start 1 first
  shop exercise start 2 second --language node`,
		Args: exactly(2, "an exercise and a new folder: shop exercise start 1 first"),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := exercises.Find(args[0])
			if err != nil {
				return err
			}
			if args[1] == "" {
				return errors.New("the folder's name is empty; give a new folder: shop exercise start 1 first")
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
	c.Flags().StringVar(&language, "language", "go", "go; of the first exercises also node or python, which need Linux, MariaDB and Redis to be checked")
	return c
}

func exerciseCheckCommand() *cobra.Command {
	var engineName string
	var o output
	c := &cobra.Command{
		Use: "check [DIR]", Short: "Hold your code to its exercise",
		Long: `Compile the code of a folder that start has made, and hold it to its exercise:
buyers one after the other, every order of a few buyers' commands, a crowd in two
processes and, with --engine local, faults on private servers. It ends at the
first thing that goes wrong. The code runs in processes of its own.

Exit code: 0 when it passes, 1 when something goes wrong, 2 when it does not
compile or something is missing, 3 when not enough was seen; 130 after Ctrl-C.`,
		Example: `  shop exercise check first
  cd first && shop exercise check
  shop exercise check first --engine local
  shop exercise check first --report what-went-wrong.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("give one folder, or none for this one")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if engineName != engine.Embedded && engineName != engine.Local {
				return fmt.Errorf("--engine is %q; give %s or %s", engineName, engine.Embedded, engine.Local)
			}
			if err := o.check(nil); err != nil {
				return err
			}
			return checkExercise(c, append(args, ".")[0], engineName == engine.Local, &o)
		},
	}
	c.Flags().StringVar(&engineName, "engine", engine.Embedded, "embedded, or local: also the exercise's faults, on private servers")
	o.register(c)
	return c
}

func checkExercise(c *cobra.Command, dir string, faults bool, o *output) error {
	e, language, err := exercise.In(dir)
	if err != nil {
		return err
	}
	if err := exercise.CheckFolder(c.Context(), e, language, dir); err != nil {
		return err
	}
	progress, err := exercise.LoadProgress()
	if err != nil {
		return err
	}
	started, shown := time.Now(), newProgress(c.ErrOrStderr())
	told := func(what string) { shown.show("%d. %s: %s", e.Number, e.Title, what) }
	var r exercise.Result
	if language == "" {
		r, err = exercise.Check(c.Context(), e, dir, faults, told)
	} else {
		r, err = exercise.CheckProgram(c.Context(), e, language, dir, faults, told)
	}
	shown.clear()
	if err != nil {
		return err
	}
	err = o.write(c, r.Document(e, started), func(out io.Writer, _ bool) error {
		fmt.Fprintf(out, "%d. %s\n", e.Number, e.Title)
		r.Print(out)
		if r.Passed() && language == "" && !faults {
			fmt.Fprintf(out, "\nfaults: those that the searches name; --engine local strikes real ones on private servers: %s\n", strings.Join(e.Faults, ", "))
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
		return &exitError{exitInconclusive, "nothing is wrong as far as was seen, and that was not enough"}
	case judge.Broken:
		return &exitError{exitHarness, "the check itself failed: " + r.Last().Why}
	}
	return progress.Solved(e, language)
}

func exerciseHintCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hint N K", Short: "The first, second or third hint; the last says what to write",
		Example: "  shop exercise hint 1 1", Args: exactly(2, "an exercise and 1, 2 or 3: shop exercise hint 1 1"),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := exercises.Find(args[0])
			if err != nil {
				return err
			}
			k, err := strconv.Atoi(args[1])
			if err != nil || k < 1 || k > len(e.Hints) {
				return fmt.Errorf("there is no hint %q; give 1 to %d", args[1], len(e.Hints))
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), e.Hints[k-1])
			return err
		},
	}
}

func exerciseSolutionCommand() *cobra.Command {
	var language string
	c := &cobra.Command{
		Use: "solution N", Short: "The reference solution, and why it is right",
		Example: "  shop exercise solution 1", Args: exactly(1, "one exercise: shop exercise solution 1"),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := exercises.Find(args[0])
			if err != nil {
				return err
			}
			folder := "solution"
			if language != "go" {
				if !slices.Contains(e.LanguageNames(), language) {
					return exercise.NotIn(e, language)
				}
				folder = language + "/solution"
			}
			code, err := e.Files(folder)
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
	c.Flags().StringVar(&language, "language", "go", "go, node or python")
	return c
}
