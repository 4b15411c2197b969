package app

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ownLease is a lock that knows until when the Lease is this replica's: another replica cannot have it before. The elector
// does not know: after a process was stopped and continued, or its machine slept, it acts as the leader for up to renewDeadline.
type ownLease struct {
	resourcelock.Interface

	// now returns the time.
	now func() time.Time
	// until is in nanoseconds since 1970, by the wall clock: others do not run while the machine sleeps.
	until atomic.Int64
}

// Create implements resourcelock.Interface.
func (l *ownLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *ownLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Update(ctx, record) })
}

// write notes until when the Lease is this replica's when it has been written. Its time begins before the write, and so before others see it.
func (l *ownLease) write(record resourcelock.LeaderElectionRecord, write func() error) error {
	until := l.now().Add(leaseDuration).UnixNano()
	if record.HolderIdentity != l.Identity() {
		until = 0
		l.until.Store(until)
	}
	err := write()
	if err == nil {
		l.until.Store(until)
	}
	return err
}

// held reports whether the Lease is certainly still this replica's.
func (l *ownLease) held() bool { return l.now().UnixNano() < l.until.Load() }
