package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/healthscope/healthscope/controllers/observe"
)

// TestMessageHasTheLatestCause has attempts that fail every ten seconds, with one cause after another. The message follows a
// cause that stays, and ignores details that differ each time.
func TestMessageHasTheLatestCause(t *testing.T) {
	t.Parallel()
	const refused, distrust = "dial tcp 10.0.0.1:6443: connection refused", "x509: certificate signed by unknown authority"
	outage := func(l *liveness, cause string, now time.Time) { l.unanswered(now, cause) }
	denial := func(l *liveness, cause string, now time.Time) {
		bundlesEvent(l, refusedEvent(observe.Forbidden, cause), now)
	}
	for name, c := range map[string]struct {
		fail   func(l *liveness, cause string, now time.Time)
		causes []string
		want   []string
	}{
		"another cause":                 {outage, slices.Concat(slices.Repeat([]string{refused}, 4), slices.Repeat([]string{distrust}, 17)), []string{refused, distrust}},
		"another cause, of a denial":    {denial, slices.Concat([]string{"403", "no right", "no right", "no right"}, slices.Repeat([]string{"not accepted"}, 17)), []string{"no right", "not accepted"}},
		"a port that changes":           {outage, []string{"read 10.0.0.1:401: reset", "read 10.0.0.1:402: reset", "read 10.0.0.1:4033: reset", "read 10.0.0.1:4: reset", "read 10.0.0.1:5: reset", "read 10.0.0.1:6: reset"}, []string{"read 10.0.0.1:401: reset"}},
		"a port that changes later":     {outage, slices.Concat(slices.Repeat([]string{"read 10.0.0.1:401: reset"}, 6), slices.Repeat([]string{"read 10.0.0.1:402: reset"}, 6)), []string{"read 10.0.0.1:401: reset"}},
		"two that take turns":           {outage, slices.Repeat([]string{refused, distrust}, 30), []string{refused}},
		"two that take turns, by twos":  {outage, slices.Repeat([]string{refused, refused, distrust, distrust}, 30), []string{refused}},
		"two that take turns, rarely":   {outage, slices.Repeat(slices.Concat(slices.Repeat([]string{refused}, 6), slices.Repeat([]string{distrust}, 6)), 9), []string{refused}},
		"a cause that comes in between": {outage, []string{refused, refused, refused, distrust, refused, refused, refused, refused}, []string{refused}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := noon
			l := newLiveness(false, 10*time.Second, now)
			l.synced = true
			readBundles(l, now)
			l.assess(now)
			var said []string
			for _, cause := range c.causes {
				c.fail(l, cause, now)
				for range 10 {
					v := l.assess(now)
					if text := v.message; v.reachability != Connected && (len(said) == 0 || said[len(said)-1] != text) {
						said = append(said, text)
					}
					now = now.Add(time.Second)
				}
			}
			if !slices.EqualFunc(said, c.want, strings.HasSuffix) {
				t.Errorf("says %q, want %q", said, c.want)
			}
		})
	}
}
