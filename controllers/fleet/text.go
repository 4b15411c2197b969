package fleet

import (
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// maxErrorText bounds the text of an error in a message, in bytes.
const maxErrorText = 200

// shortened bounds the text of an error.
func shortened(text string) string { return healthscope.Shorten(text, maxErrorText) }

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

func because(cause string) string {
	if cause == "" {
		return ""
	}
	return ": " + cause
}

// first returns the time that is set, or now.
func first(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// soonest returns the earlier of two times, of which zero means never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
