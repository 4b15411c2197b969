package fleet

import (
	"strings"
	"time"
)

// steadyTime is for how long another cause must be told of before the text of a state names it. Three attempts are less
// far apart, which may be a minute each, so that causes that take turns change nothing: each change is written to all
// scopes of the cluster.
const steadyTime = 150 * time.Second

// wording decides what the text of a state is while the state stays and its cause does not.
type wording struct {
	// other is the text that was told of last in place of the one that is shown, and since is since when; zero when there is none.
	other string
	since time.Time
}

// changes notes a text in place of the one that is shown, and says whether it is to be shown from now on.
func (w *wording) changes(shown, text string, now time.Time) bool {
	switch {
	case alike(shown, text):
		*w = wording{}
		return false
	case w.since.IsZero() || !alike(w.other, text):
		*w = wording{other: text, since: now}
		return false
	}
	return now.Sub(w.since) >= steadyTime
}

// alike says whether two texts of errors tell the same: they hold ports and numbers, which change with every attempt.
func alike(a, b string) bool { return a == b || withoutDigits(a) == withoutDigits(b) }

func withoutDigits(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, text)
}

func because(cause string) string {
	if cause == "" {
		return ""
	}
	return ": " + cause
}
