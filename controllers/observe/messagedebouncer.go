package observe

import (
	"strings"
	"time"
)

// textDebounce is how long another cause must be reported before the text of a state names it. It is longer than the time between three
// attempts, so that alternating causes do not change the text: each change is written to the status of every scope that it concerns.
const textDebounce = 150 * time.Second

// MessageDebouncer debounces the text of a state whose cause changes while its status and reason do not.
type MessageDebouncer struct {
	// pending is the latest reported text if it differs from the shown one, and since is since when it has been reported; both are zero when there
	// is none.
	pending string
	since   time.Time
}

// Changes records that text is reported while shown is shown, and reports whether text replaces shown.
func (w *MessageDebouncer) Changes(shown, text string, now time.Time) bool {
	switch {
	case equalIgnoringDigits(shown, text):
		*w = MessageDebouncer{}
		return false
	case w.since.IsZero() || !equalIgnoringDigits(w.pending, text):
		*w = MessageDebouncer{pending: text, since: now}
		return false
	}
	return now.Sub(w.since) >= textDebounce
}

// equalIgnoringDigits reports whether two error texts are equal but for digits: ports and numbers differ between attempts.
func equalIgnoringDigits(a, b string) bool { return a == b || withoutDigits(a) == withoutDigits(b) }

func withoutDigits(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, text)
}
