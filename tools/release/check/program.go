package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// namesBuild checks what `shop version` prints. commit is "" if the program does not know it.
func namesBuild(program, version, commit string) error {
	out, err := exec.Command(program, "version", "--json").Output()
	if err != nil {
		return fmt.Errorf("shop version --json: %w", err)
	}
	var b struct{ Version, Revision string }
	if err := json.Unmarshal(out, &b); err != nil {
		return fmt.Errorf("shop version --json: %w", err)
	}
	if b.Version != version || b.Revision != commit {
		return fmt.Errorf("shop version says %s of commit %q, want %s of %q", b.Version, b.Revision, version, commit)
	}
	return nil
}

// line matches a place in a stack trace.
var line = regexp.MustCompile(`cmd/shop/main\.go:\d+`)

// tracesLines checks that the stack traces of a program name lines. A shop prints its stacks when it gets SIGQUIT.
func tracesLines(program string) error {
	shop := exec.Command(program, "serve", "--addr", "127.0.0.1:0")
	var stacks bytes.Buffer
	shop.Stderr = &stacks
	out, err := shop.StdoutPipe()
	if err != nil {
		return err
	}
	if err := shop.Start(); err != nil {
		return err
	}
	limit := time.AfterFunc(time.Minute, func() { _ = shop.Process.Kill() })
	defer limit.Stop()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it prints its address when it is ready
		_ = shop.Wait()
		return fmt.Errorf("shop serve: %w: %s", err, &stacks)
	}
	if err := shop.Process.Signal(syscall.SIGQUIT); err != nil {
		return err
	}
	_ = shop.Wait() // it reports the signal
	if !line.Match(stacks.Bytes()) {
		return fmt.Errorf("a stack trace names no line: %.500s", &stacks)
	}
	return nil
}

// installs runs `go install MODULE/cmd/shop@VERSION` for the committed sources, which a module proxy in a folder serves,
// in an empty GOPATH. The other modules come from this machine's downloads if they are there.
func installs(clone string) error {
	const version = "v0.99.0"
	folder, err := os.MkdirTemp("", "release-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := serve(clone, filepath.Join(folder, "proxy"), version); err != nil {
		return err
	}
	known, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return err
	}
	cache, proxy, _ := strings.Cut(strings.TrimSpace(string(known)), "\n")
	c := exec.Command("go", "install", shopModule+"/cmd/shop@"+version)
	c.Dir = folder // outside of every module
	c.Env = append(os.Environ(),
		"GOPATH="+filepath.Join(folder, "go"), "GOMODCACHE=", "GOBIN=", "GOWORK=off",
		"GOPROXY=file://"+filepath.Join(folder, "proxy")+",file://"+filepath.Join(cache, "cache", "download")+","+proxy,
		"GONOSUMDB="+shopModule, "GOFLAGS=-trimpath -modcacherw") // RemoveAll needs the rights
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return namesBuild(filepath.Join(folder, "go", "bin", "shop"), version, "")
}

// serve writes a module proxy with one version of the committed sources (https://go.dev/ref/mod#goproxy-protocol).
func serve(clone, proxy, version string) error {
	folder := filepath.Join(proxy, filepath.FromSlash(shopModule), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	sources, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		return err
	}
	if err := zip.CreateFromVCS(sources, module.Version{Path: shopModule, Version: version}, clone, "HEAD", ""); err != nil {
		return err
	}
	if err := sources.Close(); err != nil {
		return err
	}
	text, err := exec.Command("git", "-C", clone, "show", "HEAD:go.mod").Output()
	if err != nil {
		return err
	}
	for ending, content := range map[string][]byte{
		".mod":  text,
		".info": []byte(`{"Version":"` + version + `"}`),
	} {
		if err := os.WriteFile(filepath.Join(folder, version+ending), content, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "list"), []byte(version+"\n"), 0o644)
}
