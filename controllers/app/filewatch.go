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

// debounce is the time from the first event of a change to the call of changed: a writer may need several steps.
const debounce = 250 * time.Millisecond

// configMapData is the symbolic link that the kubelet replaces when a mounted ConfigMap or Secret changes.
const configMapData = "..data"

// watchFiles returns what watches files on every replica. It calls changed at the start, because files may have changed since they
// were read, and after each possible change of one; calls do not overlap. When files cannot be watched, it logs that and never
// calls changed.
func watchFiles(paths []string, logger logr.Logger, changed func()) everyReplica {
	return func(ctx context.Context) error {
		if len(paths) == 0 { // A watcher for nothing could still fail.
			<-ctx.Done()
			return nil
		}
		watcher, err := watchDirectories(paths)
		if err != nil {
			logger.Error(err, "Cannot watch files; a change of them takes effect after a restart", "files", paths)
			<-ctx.Done()
			return nil
		}
		defer func() { _ = watcher.Close() }() // Nothing uses it afterwards.
		changed()
		var debounced <-chan time.Time
		for {
			possible := false
			select {
			case <-ctx.Done():
				return nil
			case event := <-watcher.Events:
				name := filepath.Base(event.Name)
				possible = event.Op != fsnotify.Chmod && (name == configMapData || slices.ContainsFunc(paths, func(path string) bool { return name == filepath.Base(path) }))
			case err := <-watcher.Errors:
				logger.Error(err, "Cannot watch files; they are read again", "files", paths)
				possible = true
			case <-debounced:
				debounced = nil
				changed()
			}
			if possible && debounced == nil {
				debounced = time.After(debounce)
			}
		}
	}
}

// watchDirectories watches the directories of files, because a watch on a file does not follow its replacement.
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

// restartOnChange returns what stops the program on every replica when the contents of a file are no longer those of now. It skips
// empty paths.
func (o *Options) restartOnChange(logger logr.Logger, paths ...string) (everyReplica, error) {
	paths = slices.DeleteFunc(paths, func(path string) bool { return path == "" })
	read := map[string][sha256.Size]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		read[path] = sha256.Sum256(data)
	}
	return watchFiles(paths, logger, func() {
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				logger.Error(err, "Cannot read a file; what was in it before stays in use", "file", path)
			} else if sha256.Sum256(data) != read[path] {
				logger.Info("A file has changed; exiting to be restarted with it", "file", path)
				o.stop()
			}
		}
	}), nil
}
