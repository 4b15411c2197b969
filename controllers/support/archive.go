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
	// folder is the one folder in the archive.
	folder = "healthscope-support/"
	// maxFile and maxArchive bound a file and all files together, in bytes before they are compressed.
	maxFile    = 8 << 20
	maxArchive = 128 << 20
	// maxProblem bounds what is said of one problem.
	maxProblem = 2 << 10
)

// archive is a .tar.gz that is being written.
type archive struct {
	zip      *gzip.Writer
	tar      *tar.Writer
	now      time.Time
	secret   string
	size     int
	files    int
	problems []string
	// err is why the archive cannot be written, if it cannot.
	err error
}

// newArchive begins an archive of a time, in which a secret that is known to the program is not shown, if it is not empty.
func newArchive(out io.Writer, now time.Time, secret string) *archive {
	zip := gzip.NewWriter(out)
	return &archive{zip: zip, tar: tar.NewWriter(zip), now: now, secret: secret}
}

// add adds a file, without what looks like secrets, and as much of it as has room.
func (a *archive) add(name, text string) {
	text = a.clean(text)
	if len(text) > maxFile {
		a.problem(name, errors.Errorf("only the first %d MiB of %d are kept", maxFile>>20, len(text)>>20))
		text = text[:maxFile]
	}
	if a.size += len(text); a.size > maxArchive {
		a.problem(name, errors.Errorf("left out, because the archive would be larger than %d MiB", maxArchive>>20))
		return
	}
	a.write(name, text)
}

func (a *archive) write(name, text string) {
	if a.err != nil {
		return
	}
	header := &tar.Header{Name: folder + name, Mode: 0o600, Size: int64(len(text)), ModTime: a.now, Format: tar.FormatPAX}
	if a.err = a.tar.WriteHeader(header); a.err == nil {
		_, a.err = io.WriteString(a.tar, text)
		a.files++
	}
}

// problem notes what could not be had, and why.
func (a *archive) problem(what string, err error) {
	text := healthscope.Shorten(a.clean(fmt.Sprintf("%s: %v", what, err)), maxProblem)
	a.problems = append(a.problems, strings.ReplaceAll(text, "\n", " "))
}

// close adds the list of problems, and ends the archive.
func (a *archive) close() error {
	text := "Everything could be read.\n"
	if len(a.problems) > 0 {
		text = strings.Join(a.problems, "\n") + "\n"
	}
	a.write("errors.txt", text)
	for _, end := range []func() error{a.tar.Close, a.zip.Close} {
		if err := end(); a.err == nil {
			a.err = err
		}
	}
	return errors.Wrap(a.err, "cannot write the archive")
}

// clean takes secrets out of a text: the one that is known, and what looks like one.
func (a *archive) clean(text string) string {
	if a.secret != "" {
		text = strings.ReplaceAll(text, a.secret, notShown)
	}
	return scrub(text)
}
