package app

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// trackedLock is a lock that tracks until when this replica holds the Lease: no other replica can acquire it before. The elector
// does not track that: after the process was suspended or its machine slept, it acts as the leader for up to renewDeadline.
type trackedLock struct {
	resourcelock.Interface

	// now returns the time.
	now func() time.Time
	// heldUntil is in nanoseconds since 1970, by the wall clock: a monotonic clock stops while the machine sleeps.
	heldUntil atomic.Int64
}

// Create implements resourcelock.Interface.
func (l *trackedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.track(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *trackedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.track(record, func() error { return l.Interface.Update(ctx, record) })
}

// track calls write and, if it succeeds, records until when this replica holds the Lease. The time runs from before the write,
// and so from before other replicas see it.
func (l *trackedLock) track(record resourcelock.LeaderElectionRecord, write func() error) error {
	heldUntil := l.now().Add(leaseDuration).UnixNano()
	if record.HolderIdentity != l.Identity() {
		heldUntil = 0
		l.heldUntil.Store(heldUntil)
	}
	err := write()
	if err == nil {
		l.heldUntil.Store(heldUntil)
	}
	return err
}

// held reports whether this replica certainly still holds the Lease.
func (l *trackedLock) held() bool { return l.now().UnixNano() < l.heldUntil.Load() }
