package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
	"github.com/healthscope/healthscope/e2e/process"
)

const (
	// startTimeout is the timeout of a start. A start takes seconds, but longer on a busy machine.
	startTimeout = 3 * time.Minute
	// readyInterval is the time between two readiness checks, and readyTimeout is the timeout of one check.
	readyInterval = 50 * time.Millisecond
	readyTimeout  = 2 * time.Second
)

// janitor is a script that waits until its input ends, which happens in any case when the process that started it dies.
// Then it ends the processes of its group and removes the directory $1. Most processes have ended by then: see process.Start.
const janitor = `trap '' TERM; while read -r _; do :; done; kill -s TERM 0; sleep 1; rm -rf -- "$1"; kill -s KILL 0`

// home is the environment of processes: a temporary directory, and the process group of the janitor.
type home struct {
	dir      string
	programs assets.Set
	log      io.Writer
	janitor  *exec.Cmd
}

// newHome returns a home for programs. The error wraps assets.ErrMissing if programs are missing.
func newHome(log io.Writer, programs ...string) (*home, error) {
	set, err := assets.Locate()
	if err != nil {
		return nil, err
	}
	if err := set.Require(programs...); err != nil {
		return nil, err
	}
	if log == nil {
		log = io.Discard
	}
	dir, err := os.MkdirTemp("", "healthscope-controlplane-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory: %w", err)
	}
	//nolint:gosec,noctx // The script is a constant and dir no part of it; the janitor must outlive every context.
	cmd := exec.Command("/bin/sh", "-c", janitor, "healthscope-controlplane-janitor", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the janitor: %w", err), os.RemoveAll(dir))
	}
	return &home{dir: dir, programs: set, log: log, janitor: cmd}, nil
}

// file returns the path of a file in the directory.
func (h *home) file(name string) string {
	return filepath.Join(h.dir, name)
}

// launch starts a program. Its log is the file name.log.
func (h *home) launch(name string, args ...string) (*process.Process, error) {
	return process.Start(process.Spec{
		Name: name, Path: h.programs.Path(name), Args: args, Dir: h.dir, LogPath: h.file(name + ".log"), Group: h.janitor.Process.Pid,
		Env: []string{"GOGC=400"}, // The start takes a fifth less CPU, and an API server takes 120 MB more memory.
	})
}

// close removes the directory. The processes must have ended.
func (h *home) close() error {
	err := h.janitor.Process.Kill()
	_ = h.janitor.Wait() // It was killed, so Wait returns an error.
	return errors.Join(err, os.RemoveAll(h.dir))
}

// awaitReady polls url until it answers 200, because the programs do not announce that they are ready. It fails when one
// of the processes ends.
func awaitReady(ctx context.Context, client *http.Client, url string, processes ...*process.Process) error {
	defer client.CloseIdleConnections()
	return await(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%q answers %s", url, response.Status)
		}
		return errors.Join(err, response.Body.Close())
	}, processes...)
}

// await calls ask until it returns nil. It fails when one of the processes ends; the error contains the ends of their logs.
func await(ctx context.Context, ask func(context.Context) error, processes ...*process.Process) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		for _, p := range processes {
			if !p.Running() {
				return false, p.Failure()
			}
		}
		last = ask(ctx)
		return last == nil, nil
	})
	if !wait.Interrupted(err) {
		return err
	}
	err = fmt.Errorf("%w; the last answer: %w", context.Cause(ctx), last)
	for _, p := range processes {
		err = fmt.Errorf("%w; the end of the log of %s:\n%s", err, p.Name(), p.LogTail())
	}
	return err
}
