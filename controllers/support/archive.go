package support

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/healthscope"
)

const (
	// rootDir is the directory that contains all files of the archive.
	rootDir = "healthscope-support/"
	// maxFileSize and maxArchiveSize limit the size of a file and of all files together, in bytes before compression.
	maxFileSize    = 8 << 20
	maxArchiveSize = 128 << 20
	// maxProblemSize limits the size of the description of a problem, in bytes.
	maxProblemSize = 2 << 10
)

// archive writes a .tar.gz file.
type archive struct {
	gz       *gzip.Writer
	tar      *tar.Writer
	now      time.Time
	secret   string
	size     int
	files    int
	problems []string
	// err is the first error of writing the archive.
	err error
}

// newArchive returns an archive that is written to out. Its files have the modification time now. Every occurrence of secret is redacted, unless
// secret is empty.
func newArchive(out io.Writer, now time.Time, secret string) *archive {
	gz := gzip.NewWriter(out)
	return &archive{gz: gz, tar: tar.NewWriter(gz), now: now, secret: secret}
}

// add adds a file. It redacts what looks like a secret, and truncates the file to maxFileSize. A file that exceeds maxArchiveSize is left out.
func (a *archive) add(name, text string) {
	text = a.redact(text)
	if len(text) > maxFileSize {
		a.problem(name, errors.Errorf("only the first %d MiB of %d are kept", maxFileSize>>20, len(text)>>20))
		text = text[:maxFileSize]
	}
	if a.size += len(text); a.size > maxArchiveSize {
		a.problem(name, errors.Errorf("left out, because the archive would be larger than %d MiB", maxArchiveSize>>20))
		return
	}
	a.write(name, text)
}

func (a *archive) write(name, text string) {
	if a.err != nil {
		return
	}
	header := &tar.Header{Name: rootDir + name, Mode: 0o600, Size: int64(len(text)), ModTime: a.now, Format: tar.FormatPAX}
	if a.err = a.tar.WriteHeader(header); a.err == nil {
		_, a.err = io.WriteString(a.tar, text)
		a.files++
	}
}

// problem records what could not be read, and why.
func (a *archive) problem(what string, err error) {
	text := healthscope.Shorten(a.redact(fmt.Sprintf("%s: %v", what, err)), maxProblemSize)
	a.problems = append(a.problems, strings.ReplaceAll(text, "\n", " "))
}

// close adds the list of problems, and closes the archive.
func (a *archive) close() error {
	text := "Everything could be read.\n"
	if len(a.problems) > 0 {
		text = strings.Join(a.problems, "\n") + "\n"
	}
	a.write("errors.txt", text)
	for _, end := range []func() error{a.tar.Close, a.gz.Close} {
		if err := end(); a.err == nil {
			a.err = err
		}
	}
	return errors.Wrap(a.err, "cannot write the archive")
}

// redact replaces secrets in a text: the known secret, and what looks like a secret.
func (a *archive) redact(text string) string {
	if a.secret != "" {
		text = strings.ReplaceAll(text, a.secret, redacted)
	}
	return redactText(text)
}
