package fleet

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
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

// Maximum pauses between attempts that get no answer.
const (
	// maxProbePause is the maximum for a cluster that has answered before, so that its recovery shows soon.
	maxProbePause = 10 * time.Second
	// maxConnectPause is the maximum for a cluster that has never answered.
	maxConnectPause = time.Minute
)

// retries returns the pauses between attempts that get no answer. They double, with jitter, up to maxPause.
func retries(maxPause time.Duration) wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.25, Steps: 10, Cap: maxPause * 4 / 5}
}
