package fleet

import "time"

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// soonest returns the earlier of two times; zero means never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
