// Command check builds a release of a clone without publishing it, and checks what users would download. It
// verifies the checksums, and the size, the target and the SBOM of each program. It runs this machine's program,
// and `go install`.
//
//	go run -C tools/release ./check FOLDER
//
// It exits with 1 and names everything that is wrong.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// largest is the maximum size of a released program in bytes.
const largest = 45_000_000

const shopModule = "github.com/oversell/oversell"

// targets are the systems that a release has an archive for.
var targets = []target{
	{"linux", "amd64", ".tar.gz"},
	{"linux", "arm64", ".tar.gz"},
	{"darwin", "amd64", ".tar.gz"},
	{"darwin", "arm64", ".tar.gz"},
	{"windows", "amd64", ".zip"},
	{"windows", "arm64", ".zip"},
}

type target struct{ os, arch, ending string }

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run -C tools/release ./check FOLDER")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "release-check:", err)
		os.Exit(1)
	}
	fmt.Println("release-check: ok")
}

func check(clone string) error {
	for _, args := range [][]string{{"check", "--quiet"}, {"release", "--snapshot", "--clean"}} {
		if err := goreleaser(clone, args...); err != nil {
			return err
		}
	}
	folder := filepath.Join(clone, "bin", "release")
	var made struct{ Version, Commit string } // of the release
	text, err := os.ReadFile(filepath.Join(folder, "metadata.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &made); err != nil {
		return fmt.Errorf("metadata.json: %w", err)
	}

	wrong := []error{verifySums(folder)}
	for _, t := range targets {
		name := fmt.Sprintf("shop_%s_%s_%s", made.Version, t.os, t.arch)
		if err := checkArchive(folder, name, t); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
	}
	if err := runsHere(folder, made.Version, made.Commit); err != nil {
		wrong = append(wrong, err)
	}
	if err := installs(clone); err != nil {
		wrong = append(wrong, fmt.Errorf("go install: %w", err))
	}
	return errors.Join(wrong...)
}

// goreleaser runs the version of goreleaser that go.mod names.
func goreleaser(clone string, args ...string) error {
	c := exec.Command("go", append([]string{"tool", "-modfile=tools/release/go.mod", "goreleaser"}, args...)...)
	c.Dir, c.Stdout, c.Stderr = clone, os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("goreleaser %s: %w", args[0], err)
	}
	return nil
}

// runsHere checks this machine's program: it runs, names its release, and its stack traces have line numbers.
func runsHere(folder, version, commit string) error {
	program := filepath.Join(folder, "here")
	name := fmt.Sprintf("shop_%s_%s_%s", version, runtime.GOOS, runtime.GOARCH)
	for _, t := range targets {
		if t.os != runtime.GOOS || t.arch != runtime.GOARCH {
			continue
		}
		files, err := unpack(filepath.Join(folder, name+t.ending))
		if err != nil {
			return err
		}
		if err := os.WriteFile(program, files["shop"], 0o755); err != nil {
			return err
		}
		defer os.Remove(program)
		return errors.Join(namesBuild(program, "v"+version, commit), tracesLines(program))
	}
	return fmt.Errorf("no release for %s/%s", runtime.GOOS, runtime.GOARCH)
}
