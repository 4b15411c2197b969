package fleet

import "time"

// until returns how long it is from now to t, at least a millisecond, so that a
// moment that has just passed is not taken for never; zero when t is zero.
func until(t, now time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(t.Sub(now), time.Millisecond)
}
