package app

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// settle is how long a change of a file may take from its first sign: a writer may need several steps.
const settle = 250 * time.Millisecond

// configMapData is the link that the kubelet exchanges when a mounted ConfigMap or Secret changes.
const configMapData = "..data"

// watchDirectories watches the directories of files, because a file that is replaced is another file.
func watchDirectories(paths []string) (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if err := watcher.Add(filepath.Dir(path)); err != nil {
			_ = watcher.Close() // The other error is the one to report.
			return nil, err
		}
	}
	return watcher, nil
}

// concerns reports whether an event in a directory may be a change of one of the files.
func concerns(paths []string, event fsnotify.Event) bool {
	name := filepath.Base(event.Name)
	return event.Op != fsnotify.Chmod && (name == configMapData || slices.ContainsFunc(paths, func(path string) bool { return name == filepath.Base(path) }))
}

// credentialWatch ends the program when files have other contents than those it has started with.
type credentialWatch struct {
	// contents are digests of the files, by their paths, as the program has read them.
	contents map[string][sha256.Size]byte
	stop     func()
	logger   logr.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica uses them.
func (*credentialWatch) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It returns when the context ends.
func (w *credentialWatch) Start(ctx context.Context) error {
	var paths []string
	for path := range w.contents {
		paths = append(paths, path)
	}
	watchFiles(ctx, paths, w.logger, func() {
		for path, before := range w.contents {
			data, err := os.ReadFile(path)
			if err != nil {
				w.logger.Error(err, "Cannot read a file; what was in it before stays in use", "file", path)
			} else if sha256.Sum256(data) != before {
				w.logger.Info("A file has changed; exiting to be restarted with it", "file", path)
				w.stop()
			}
		}
	})
	return nil
}

// watchFiles calls changed now, because files may have changed since they were read, and whenever they may have changed
// since, until the context ends. When they cannot be watched it says so, and does nothing else.
func watchFiles(ctx context.Context, paths []string, logger logr.Logger, changed func()) {
	watcher, err := watchDirectories(paths)
	if err != nil {
		logger.Error(err, "Cannot watch files; a change of them takes effect after a restart", "files", paths)
		<-ctx.Done()
		return
	}
	defer func() { _ = watcher.Close() }() // There is nothing left to do with it.
	changed()
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-watcher.Events:
			if settled == nil && concerns(paths, event) {
				settled = time.After(settle)
			}
		case err := <-watcher.Errors:
			logger.Error(err, "Cannot watch files; they are read again", "files", paths)
			if settled == nil {
				settled = time.After(settle)
			}
		case <-settled:
			settled = nil
			changed()
		}
	}
}
