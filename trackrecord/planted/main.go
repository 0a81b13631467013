// Command planted plants one bug after the other in a copy of this repository. For each bug it runs the
// instrument that must catch the bug: a command of shop, or a test.
//
//	NAME.patch -> copy, git apply -> go build ./cmd/shop -> shop rush|explore|verify, go test -> caught or missed
//
// The arguments are names of patches. Without arguments it runs all patches, which takes half an hour on two
// cores. Patches whose command has `--engine local` need the servers that `make planted` installs.
//
// The classes of the bugs:
//
//  1. A lock is kept on an error path, or released late.
//  2. A retry uses what it read before.
//  3. A renewal does not happen.
//  4. A client releases another holder's lock, or writes under it.
//  5. "Sold" is answered before it is true.
//  6. Statements, or their order, leave a gap.
//  7. One instrument cannot follow the code: random keys, locks left behind.
//  8. One unit of one product does not show the bug.
//  9. An `Idempotency-Key` sells twice, or answers for another purchase.
//  10. A quorum has no majority.
//  11. A living process loses its lease.
//  12. A data race.
//  13. "Sold out" or old units survive a restock.
//  14. An avoidable error reaches the buyer.
//  15. A receipt is impossible, with correct stock and records.
//
// Exit code 0: every bug was caught, and no control was reported as a bug. 1: some result is wrong. 2: a patch
// does not apply or does not build.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/oversell/oversell/internal/tier"
)

// folder contains the patches. It is relative to the top of the repository.
const folder = "trackrecord/planted"

// runTimeout limits one run of an instrument. The slowest took two minutes on two cores.
const runTimeout = 10 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logs := flag.String("logs", "", "a folder to keep what each instrument printed in")
	flag.Parse()
	ok, err := plantAll(ctx, *logs, flag.Args(), os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "planted: "+strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}

// plantAll runs all patches, and prints a row for each as it ends. The result `ok` reports whether each patch
// had the expected result.
func plantAll(ctx context.Context, logs string, names []string, out io.Writer) (ok bool, err error) {
	patches, err := readPatches(folder, names)
	if err != nil {
		return false, err
	}
	for _, p := range patches { // check all patches before the first build
		if err := p.apply(ctx, ".", "--check"); err != nil {
			return false, err
		}
	}
	tree, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tree)) }()
	if err := copyTracked(ctx, tree); err != nil {
		return false, err
	}
	fmt.Fprintf(out, "| patch | class | where | instrument | verdict | seconds |\n|---|---|---|---|---|---|\n")
	kept := 0
	for _, p := range patches {
		start := time.Now()
		code, printed, err := p.plant(ctx, tree)
		switch {
		case ctx.Err() != nil:
			return false, errors.New("interrupted")
		case err != nil:
			return false, err
		}
		if logs != "" {
			if err := os.WriteFile(filepath.Join(logs, p.name+".log"), []byte(printed), 0o666); err != nil {
				return false, err
			}
		}
		verdict, right := p.judge(code, printed)
		if right {
			kept++
		}
		fmt.Fprintf(out, "| %s | %s | %s | `%s` | %s | %.0f |\n", p.name, p.class, p.area, strings.Join(p.run, " "), verdict, time.Since(start).Seconds())
	}
	fmt.Fprintf(out, "\n%d of %d as expected\n", kept, len(patches))
	return kept == len(patches), nil
}

// plant applies the patch to the copy in the folder tree, builds the shop, runs the instrument, and reverts
// the patch.
func (p patch) plant(ctx context.Context, tree string) (code int, printed string, err error) {
	if err := p.apply(ctx, tree); err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, p.apply(context.WithoutCancel(ctx), tree, "--reverse")) }()
	shop := filepath.Join(tree, "bin", "shop")
	program := shop
	if p.run[0] == "go" {
		program = "go"
	}
	if out, err := in(ctx, tree, "go", "build", "-o", shop, "./cmd/shop").CombinedOutput(); err != nil {
		return 0, "", fmt.Errorf("%s does not build: %w: %s", p.file, err, out)
	}
	limited, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := in(limited, tree, program, p.run[1:]...)
	cmd.Env = append(cmd.Env, "OVERSELL_SHOP_BIN="+shop, "OVERSELL_SHOP_RACE_BIN="+shop) // go test reads these variables
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }                // lets the instrument end its servers
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && limited.Err() == nil {
		return 0, "", err
	}
	return cmd.ProcessState.ExitCode(), string(out), nil
}

func (p patch) apply(ctx context.Context, tree string, flags ...string) error {
	file, err := filepath.Abs(p.file)
	if err != nil {
		return err
	}
	if out, err := in(ctx, tree, "git", append(append([]string{"apply"}, flags...), file)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not apply any more; write it anew: %s", p.file, out)
	}
	return nil
}

// in returns a command that runs in a folder. In its environment, git finds no repository above the folder, and
// `go test` also runs the tests of `make soak`.
func in(ctx context.Context, folder, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(os.TempDir()), tier.Variable+"=1")
	return cmd
}

// copyTracked copies the files that git tracks to the folder tree, as they are in the work tree.
func copyTracked(ctx context.Context, tree string) error {
	list, err := in(ctx, ".", "git", "ls-files", "-z").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o777); err != nil {
			return err
		}
	}
	return nil
}
