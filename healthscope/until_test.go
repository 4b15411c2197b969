package healthscope_test

import (
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// TestUntil asserts that a time that has come results in a positive duration. For a controller, zero means that there is nothing
// to wait for.
func TestUntil(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		at   time.Time
		want time.Duration
	}{
		"Never": {time.Time{}, 0},
		"Later": {now.Add(time.Minute), time.Minute},
		"Now":   {now, time.Millisecond},
		"Past":  {now.Add(-time.Hour), time.Millisecond},
	} {
		if got := healthscope.Until(c.at, now); got != c.want {
			t.Errorf("%s: want %s, got %s", name, c.want, got)
		}
	}
}
