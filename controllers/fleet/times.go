package fleet

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// sleep waits for a pause, or returns the error of ctx if that ends before.
func sleep(ctx context.Context, c clock.Clock, pause time.Duration) error {
	select {
	case <-c.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
