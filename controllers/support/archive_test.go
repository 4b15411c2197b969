package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readArchive returns the content of an archive's files by name.
func readArchive(t *testing.T, archive io.Reader) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(zip); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(header.Name, rootDir)
		if !ok {
			t.Errorf("%s is not in the folder", header.Name)
		}
		files[name] = string(data)
	}
}

func TestArchiveRedactsSecrets(t *testing.T) {
	var out bytes.Buffer
	a := newArchive(&out, time.Now(), "known")
	a.add("a.txt", "password=canary, and more that is known")
	a.problem("pods", errors.New("no\nright to https://me:canary@host, as is known"))
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a.txt": "password=(not shown), and more that is (not shown)", "errors.txt": "pods: no right to https://(not shown)@host, as is (not shown)\n"}
	if diff := cmp.Diff(want, readArchive(t, &out)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestArchiveIsBounded(t *testing.T) {
	var out bytes.Buffer
	a := newArchive(&out, time.Now(), "")
	large := strings.Repeat(strings.Repeat("x", 255)+"\n", maxFileSize/256+1)
	a.add("large", large)
	a.size = maxArchiveSize - 10
	a.add("small", "it fits")
	a.add("later", "it does not fit")
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	files := readArchive(t, &out)
	if len(files["large"]) != maxFileSize || files["small"] == "" || files["later"] != "" {
		t.Errorf("files have %d and %d bytes, and one has %q", len(files["large"]), len(files["small"]), files["later"])
	}
	const want = "large: only the first 8 MiB of 8 are kept\nlater: left out, because the archive would be larger than 128 MiB\n"
	if diff := cmp.Diff(want, files["errors.txt"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// failingWriter is a writer whose disk is full.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestArchiveReportsWriteErrors(t *testing.T) {
	a := newArchive(failingWriter{}, time.Now(), "")
	a.add("a.txt", strings.Repeat("x", 1<<20))
	if err := a.close(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v", err)
	}
}
