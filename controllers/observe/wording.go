package observe

import (
	"strings"
	"time"
)

// steadyTime is how long another cause must be reported before the text of a state names it. Three attempts are at most that far apart, so
// that causes that alternate change nothing: each change of the text is written to the status of every scope that it concerns.
const steadyTime = 150 * time.Second

// Wording decides which text a state has while the state stays and its cause does not.
type Wording struct {
	// other is the text that was reported last in place of the one that is shown, and since is since when; zero when there is none.
	other string
	since time.Time
}

// Changes notes that text is reported while shown is shown, and reports whether it is to be shown from now on.
func (w *Wording) Changes(shown, text string, now time.Time) bool {
	switch {
	case alike(shown, text):
		*w = Wording{}
		return false
	case w.since.IsZero() || !alike(w.other, text):
		*w = Wording{other: text, since: now}
		return false
	}
	return now.Sub(w.since) >= steadyTime
}

// alike reports whether two texts of errors say the same: they hold ports and numbers, which differ between attempts.
func alike(a, b string) bool { return a == b || withoutDigits(a) == withoutDigits(b) }

func withoutDigits(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, text)
}
