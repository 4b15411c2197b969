package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/healthscope/healthscope/e2e/controlplane/filelock"
)

const (
	// dirPrefix begins the name of every temporary directory of a control plane, and of none that is to be kept.
	dirPrefix = "healthscope-controlplane-tmp-"
	// lockFile in a directory is locked as long as its owner lives.
	lockFile = "owner.lock"
	// logDir, pkiDir and etcdDir are the directories inside.
	logDir  = "logs"
	pkiDir  = "pki"
	etcdDir = "etcd"
	// staleAge protects a directory that another process has just made and not locked yet.
	staleAge = time.Minute
)

// workdir is the locked directory of a control plane.
type workdir struct {
	path string
	lock *filelock.Lock
	// keep says that the directory stays when it is closed.
	keep bool
}

// openWorkdir takes directory dir, or a new temporary one if dir is empty.
func openWorkdir(dir string, keep bool) (*workdir, error) {
	if dir == "" {
		temporary, err := os.MkdirTemp("", dirPrefix)
		if err != nil {
			return nil, fmt.Errorf("cannot make directory: %w", err)
		}
		dir = temporary
	} else if err := checkWorkdir(dir); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot use Dir %q: %w", dir, err)
	}
	for _, sub := range []string{logDir, pkiDir, etcdDir} {
		if err := os.MkdirAll(filepath.Join(path, sub), 0o700); err != nil {
			return nil, fmt.Errorf("cannot make directory: %w", err)
		}
	}
	lock, err := filelock.TryLock(filepath.Join(path, lockFile))
	if err != nil {
		return nil, fmt.Errorf("cannot use Dir %q: %w", path, err)
	}
	return &workdir{path: path, lock: lock, keep: keep}, nil
}

// checkWorkdir refuses a directory that holds something else: it may be removed as a whole.
func checkWorkdir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot use Dir %q: %w", dir, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, lockFile)); err != nil {
		return fmt.Errorf("cannot use Dir %q: it is not empty and no control plane made it", dir)
	}
	return nil
}

// file is the path of a file in the directory.
func (w *workdir) file(elements ...string) string {
	return filepath.Join(append([]string{w.path}, elements...)...)
}

// close unlocks the directory and removes it, unless it is to be kept.
func (w *workdir) close() error {
	var err error
	if !w.keep {
		err = os.RemoveAll(w.path)
	}
	return errors.Join(err, w.lock.Release())
}

// sweep removes the directories in parent of control planes whose owner is dead and whose janitor died with it, as after
// a reboot. What cannot be removed, for instance another user's, stays: that is no reason not to start.
func sweep(parent string, now time.Time) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !stale(info, now) {
			continue
		}
		path := filepath.Join(parent, entry.Name())
		lock, err := filelock.TryLock(filepath.Join(path, lockFile))
		if err != nil {
			continue
		}
		_ = os.RemoveAll(path)
		_ = lock.Release()
	}
}

// stale tells whether a directory entry may be the forgotten directory of a control plane.
func stale(info fs.FileInfo, now time.Time) bool {
	matches, err := filepath.Match(dirPrefix+"*", info.Name())
	return err == nil && matches && info.IsDir() && now.Sub(info.ModTime()) > staleAge
}
