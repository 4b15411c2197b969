package app

import (
	"context"
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

// fileWatch watches files while the program runs.
type fileWatch struct {
	paths []string
	// changed is called at the start, because files may have changed since they were read, and whenever they may have
	// changed since, never twice at a time.
	changed func()
	logger  logr.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica uses the files.
func (*fileWatch) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It returns when the context ends. When the files cannot be watched it says so, and
// does nothing else.
func (w *fileWatch) Start(ctx context.Context) error {
	watcher, err := watchDirectories(w.paths)
	if err != nil {
		w.logger.Error(err, "Cannot watch files; a change of them takes effect after a restart", "files", w.paths)
		<-ctx.Done()
		return nil
	}
	defer func() { _ = watcher.Close() }() // There is nothing left to do with it.
	w.changed()
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-watcher.Events:
			if settled == nil && concerns(w.paths, event) {
				settled = time.After(settle)
			}
		case err := <-watcher.Errors:
			w.logger.Error(err, "Cannot watch files; they are read again", "files", w.paths)
			if settled == nil {
				settled = time.After(settle)
			}
		case <-settled:
			settled = nil
			w.changed()
		}
	}
}
