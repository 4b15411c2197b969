package fleet

import (
	"context"
	"math/rand/v2"
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

// Pauses between probes that get no answer. They double, with jitter.
const (
	minProbePause = time.Second
	// maxProbePause is the maximum for a cluster that has answered before, so that its recovery shows soon.
	maxProbePause = 10 * time.Second
	// maxConnectPause is the maximum for a cluster that has never answered.
	maxConnectPause = time.Minute
)

// nextPause returns the pause after a probe that got no answer: twice the previous one, between minProbePause and maxPause.
func nextPause(last, maxPause time.Duration) time.Duration {
	return min(max(2*last, minProbePause), maxPause)
}

// jittered returns a pause that is up to a quarter shorter.
func jittered(pause time.Duration) time.Duration {
	return pause*3/4 + rand.N(pause/4) //nolint:gosec // The time of a retry is no secret.
}
