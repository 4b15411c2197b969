// Package filelock locks files between processes (flock(2)). The kernel releases a lock when its holder ends, however it
// ends, so a held lock means a living owner. Unix only. It imports nothing of this project.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked says that somebody else holds the lock.
var ErrLocked = errors.New("locked by another owner")

// retryInterval is the pause between two attempts of Acquire: flock(2) can neither be watched nor be given up half-way.
const retryInterval = 200 * time.Millisecond

// Lock is a held lock. The file stays when the lock is released: removing it would race with the next owner.
type Lock struct {
	file *os.File
}

// TryLock takes the lock on the file at path, which is created when it does not exist. The error wraps ErrLocked when
// somebody else, in this process or another one, holds it.
func TryLock(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open lock file: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("cannot lock %q: %w", path, err), file.Close())
	}
	return &Lock{file: file}, nil
}

// Acquire takes the lock as TryLock does, and waits for it until ctx is done. It calls waiting, unless nil, once if it
// has to wait.
func Acquire(ctx context.Context, path string, waiting func()) (*Lock, error) {
	ticker := time.NewTicker(retryInterval)
	defer ticker.Stop()
	for first := true; ; first = false {
		lock, err := TryLock(path)
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot lock %q: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// Release gives the lock up.
func (l *Lock) Release() error {
	return l.file.Close()
}
