package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// others are the files of an archive next to the program.
var others = []string{"LICENSE", "README.md", "CHANGELOG.md", "install-servers.sh"}

// checkArchive checks the archive of one target, and the SBOM of its program.
func checkArchive(folder, name string, t target) error {
	files, err := unpack(filepath.Join(folder, name+t.ending))
	if err != nil {
		return err
	}
	program := "shop"
	if t.os == "windows" {
		program = "shop.exe"
	}
	var wrong []error
	for _, file := range append([]string{program}, others...) {
		if len(files[file]) == 0 {
			wrong = append(wrong, fmt.Errorf("%s is missing or empty", file))
		}
	}
	if size := len(files[program]); size > largest {
		wrong = append(wrong, fmt.Errorf("%s has %d bytes, at most %d are allowed", program, size, largest))
	} else {
		fmt.Printf("%s: %s has %.1f MB\n", name, program, float64(size)/1e6)
	}
	info, err := buildinfo.Read(bytes.NewReader(files[program]))
	if err != nil {
		return errors.Join(append(wrong, err)...)
	}
	for _, want := range []string{"GOOS=" + t.os, "GOARCH=" + t.arch, "CGO_ENABLED=0", "-trimpath=true"} {
		if !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key+"="+s.Value == want }) {
			wrong = append(wrong, fmt.Errorf("%s was not built with %s", program, want))
		}
	}
	var linked []string
	for _, m := range info.Deps {
		linked = append(linked, m.Path+"@"+m.Version)
	}
	text, err := os.ReadFile(filepath.Join(folder, name+".cdx.json"))
	if err != nil {
		return errors.Join(append(wrong, err)...)
	}
	if err := lists(text, linked); err != nil {
		wrong = append(wrong, fmt.Errorf("SBOM: %w", err))
	}
	return errors.Join(wrong...)
}

// lists reports whether an SBOM in CycloneDX has exactly the linked modules.
func lists(sbom []byte, linked []string) error {
	var bom struct {
		BOMFormat  string
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(sbom, &bom); err != nil {
		return err
	}
	if bom.BOMFormat != "CycloneDX" {
		return fmt.Errorf("its format is %q", bom.BOMFormat)
	}
	var listed []string
	for _, c := range bom.Components {
		if c.Name != "std" { // the standard library, which no module provides
			listed = append(listed, c.Name+"@"+c.Version)
		}
	}
	slices.Sort(listed)
	linked = slices.Sorted(slices.Values(linked))
	if len(linked) == 0 || !slices.Equal(listed, linked) {
		return fmt.Errorf("it lists %d modules, and the program has %d", len(listed), len(linked))
	}
	return nil
}

// verifySums checks that checksums.txt has the right checksum of every archive and SBOM.
func verifySums(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "checksums.txt"))
	if err != nil {
		return err
	}
	named := map[string]bool{}
	var wrong []error
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		sum, file, ok := strings.Cut(lines.Text(), "  ")
		if !ok {
			return fmt.Errorf("checksums.txt: %q is not a checksum and a file", lines.Text())
		}
		content, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return err
		}
		if is := sha256.Sum256(content); hex.EncodeToString(is[:]) != sum {
			wrong = append(wrong, fmt.Errorf("checksums.txt: %s has another checksum", file))
		}
		named[file] = true
	}
	for _, pattern := range []string{"*.tar.gz", "*.zip", "*.cdx.json"} {
		files, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(files) == 0 {
			wrong = append(wrong, errors.Join(fmt.Errorf("no %s", pattern), err))
		}
		for _, file := range files {
			if !named[filepath.Base(file)] {
				wrong = append(wrong, fmt.Errorf("checksums.txt lacks %s", filepath.Base(file)))
			}
		}
	}
	return errors.Join(wrong...)
}

// unpack returns the files of an archive by name.
func unpack(path string) (map[string][]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if strings.HasSuffix(path, ".zip") {
		archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return nil, err
		}
		for _, f := range archive.File {
			r, err := f.Open()
			if err != nil {
				return nil, err
			}
			if files[f.Name], err = io.ReadAll(r); err != nil {
				return nil, err
			}
		}
		return files, nil
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			return nil, err
		}
	}
}
