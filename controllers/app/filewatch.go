package app

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// debounce is the time from the first event of a change to the call of fileWatch.changed: a writer may need several steps.
const debounce = 250 * time.Millisecond

// configMapData is the symbolic link that the kubelet replaces when a mounted ConfigMap or Secret changes.
const configMapData = "..data"

// fileWatch watches files while the program runs.
type fileWatch struct {
	paths []string
	// changed is called at the start, because files may have changed since they were read, and after each possible change
	// of one. Calls do not overlap.
	changed func()
	logger  logr.Logger
}

// Start watches the files until ctx ends. Every replica does. When the files cannot be watched, it logs that and never
// calls changed.
func (w *fileWatch) Start(ctx context.Context) error {
	watcher, err := w.watchDirectories()
	if err != nil {
		w.logger.Error(err, "Cannot watch files; a change of them takes effect after a restart", "files", w.paths)
		<-ctx.Done()
		return nil
	}
	defer func() { _ = watcher.Close() }() // Nothing uses it afterwards.
	w.changed()
	var debounced <-chan time.Time
	for {
		possible := false
		select {
		case <-ctx.Done():
			return nil
		case event := <-watcher.Events:
			possible = w.concerns(event)
		case err := <-watcher.Errors:
			w.logger.Error(err, "Cannot watch files; they are read again", "files", w.paths)
			possible = true
		case <-debounced:
			debounced = nil
			w.changed()
		}
		if possible && debounced == nil {
			debounced = time.After(debounce)
		}
	}
}

// watchDirectories watches the directories of the files, because a watch on a file does not follow its replacement.
func (w *fileWatch) watchDirectories() (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	for _, path := range w.paths {
		if err := watcher.Add(filepath.Dir(path)); err != nil {
			_ = watcher.Close() // The other error is the one to report.
			return nil, err
		}
	}
	return watcher, nil
}

// concerns reports whether an event in a directory may be a change of one of the files.
func (w *fileWatch) concerns(event fsnotify.Event) bool {
	name := filepath.Base(event.Name)
	return event.Op != fsnotify.Chmod && (name == configMapData || slices.ContainsFunc(w.paths, func(path string) bool { return name == filepath.Base(path) }))
}
