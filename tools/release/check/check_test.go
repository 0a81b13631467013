package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSums: a checksum that is wrong, and a file without one, are seen.
func TestSums(t *testing.T) {
	t.Parallel()
	all := map[string]string{"a.tar.gz": "archive", "a.zip": "other", "a.cdx.json": "{}"}
	for name, test := range map[string]struct {
		skip, change, want string
	}{
		"right":      {},
		"wrong":      {change: "a.zip", want: "a.zip has another checksum"},
		"missing":    {skip: "a.cdx.json", want: "checksums.txt lacks a.cdx.json"},
		"no archive": {skip: "a.tar.gz", change: "-a.tar.gz", want: "no *.tar.gz"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, sums := t.TempDir(), ""
			for _, file := range slices.Sorted(maps.Keys(all)) {
				if test.skip != file {
					sums += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(all[file])), file)
				}
				content := all[file]
				if test.change == file {
					content += "changed"
				}
				if test.change != "-"+file {
					write(t, filepath.Join(folder, file), content)
				}
			}
			write(t, filepath.Join(folder, "checksums.txt"), sums)
			wants(t, verifySums(folder), test.want)
		})
	}
}

// TestLists: an SBOM that is no CycloneDX, or that lists other modules than the program has, is seen.
func TestLists(t *testing.T) {
	t.Parallel()
	const sound = `{"bomFormat":"CycloneDX","components":[{"name":"b","version":"v2"},{"name":"std","version":"go1"},{"name":"a","version":"v1"}]}`
	linked := []string{"a@v1", "b@v2"}
	wants(t, lists([]byte(sound), linked), "")
	wants(t, lists([]byte(strings.Replace(sound, "v2", "v3", 1)), linked), "it lists 2 modules")
	wants(t, lists([]byte(sound), linked[:1]), "it lists 2 modules, and the program has 1")
	wants(t, lists([]byte(strings.Replace(sound, "CycloneDX", "SPDX", 1)), linked), `its format is "SPDX"`)
	wants(t, lists([]byte(sound[1:]), linked), "invalid character")
	wants(t, lists([]byte(`{"bomFormat":"CycloneDX"}`), nil), "it lists 0 modules")
}

// TestArchive: a program that is missing, too large, or built for another target, is seen. This test program stands
// in for the shop.
func TestArchive(t *testing.T) {
	t.Parallel()
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	linux := target{"linux", "amd64", ".tar.gz"}
	for name, test := range map[string]struct {
		target  target
		program []byte
		want    string
	}{
		"no program":   {linux, nil, "shop is missing or empty"},
		"no LICENSE":   {linux, self, "LICENSE is missing or empty"},
		"too large":    {linux, append(slices.Clone(self), make([]byte, largest)...), "at most 45000000 are allowed"},
		"other target": {target{"windows", "arm64", ".zip"}, self, "shop.exe was not built with GOARCH=arm64"},
		"no SBOM":      {linux, self, "shop.cdx.json: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			files := map[string][]byte{"shop": test.program}
			if test.target.os == "windows" {
				files = map[string][]byte{"shop.exe": test.program}
			}
			pack(t, filepath.Join(folder, "shop"+test.target.ending), files)
			wants(t, checkArchive(folder, "shop", test.target), test.want)
		})
	}
}

// pack writes an archive.
func pack(t *testing.T, path string, files map[string][]byte) {
	t.Helper()
	var archive bytes.Buffer
	if strings.HasSuffix(path, ".zip") {
		w := zip.NewWriter(&archive)
		for name, content := range files {
			f, err := w.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(content); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		write(t, path, archive.String())
		return
	}
	zipped := gzip.NewWriter(&archive)
	w := tar.NewWriter(zipped)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, archive.String())
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wants checks an error's text; "" means no error.
func wants(t *testing.T, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("got the error %v, want one with %q", err, text)
	}
}
