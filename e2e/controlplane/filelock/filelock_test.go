package filelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestTryLockRefusesASecondOwnerUntilReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryLock(path)
	if err != nil {
		t.Fatalf("TryLock: %v", err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Fatalf("second TryLock: want ErrLocked, got %v", err)
	}
	if err := first.Release(); err != nil {
		t.Fatalf("Release: %v", err)
	}
	second, err := TryLock(path)
	if err != nil {
		t.Fatalf("TryLock after Release: %v", err)
	}
	if err := second.Release(); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

func TestAcquireWaitsForTheOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryLock(path)
	if err != nil {
		t.Fatalf("TryLock: %v", err)
	}
	// The owner lets go only when it has been waited for, so the second lock can only come from the wait.
	second, err := Acquire(t.Context(), path, func() {
		if err := first.Release(); err != nil {
			t.Errorf("Release: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	if err := second.Release(); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	owner, err := TryLock(path)
	if err != nil {
		t.Fatalf("TryLock: %v", err)
	}
	defer func() { _ = owner.Release() }()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Acquire(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Fatalf("Acquire: want context.Canceled, got %v", err)
	}
}

func TestTryLockNamesTheFileItCannotOpen(t *testing.T) {
	if _, err := TryLock(filepath.Join(t.TempDir(), "missing", "lock")); err == nil || errors.Is(err, ErrLocked) {
		t.Fatalf("want an open error, got %v", err)
	}
}
