package probe_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope/probe"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// outcomes maps the letters of a story to outcomes.
var outcomes = map[rune]probe.Outcome{
	's': {Kind: probe.Success}, 'f': {Kind: probe.Failure, Cause: "status code 503"}, 'w': {Kind: probe.NotProxied, Cause: "no way"}, '-': {Kind: probe.Silent, Cause: "silent"},
}

// after returns the finding after a story, with one probe per second.
func after(story string, t probe.Thresholds) probe.Finding {
	var h probe.History
	for i, letter := range story {
		h.Add(outcomes[letter], t, noon.Add(time.Duration(i)*time.Second))
	}
	return h.Finding()
}

// byDefault returns the thresholds of a scope that sets none.
func byDefault(t interface{ Fatal(...any) }) probe.Thresholds {
	spec, err := probe.Parse(asking(nil))
	if err != nil {
		t.Fatal(err)
	}
	return spec.Thresholds
}

// drawThresholds draws any thresholds, or those of a scope that sets none.
func drawThresholds(t *rapid.T) probe.Thresholds {
	if rapid.Bool().Draw(t, "default") {
		return byDefault(t)
	}
	return probe.Thresholds{Failure: rapid.Float64Range(0, 1).Draw(t, "failure"), Healthy: rapid.Float64Range(0, 1).Draw(t, "healthy")}
}

func TestResults(t *testing.T) {
	rates := probe.Thresholds{Failure: 0.3, Healthy: 0.7}
	for _, c := range []struct {
		story      string
		thresholds probe.Thresholds
		want       probe.Result
		cause      string
	}{
		{"", byDefault(t), probe.Undecided, ""},
		{"s", byDefault(t), probe.Passing, ""},
		{"f", byDefault(t), probe.Undecided, "status code 503"},
		{"fff", byDefault(t), probe.Failing, "status code 503"},
		{"sff", byDefault(t), probe.Passing, ""},
		{"sfff", byDefault(t), probe.Failing, "status code 503"},
		{"sffsff", byDefault(t), probe.Passing, ""},
		{"sfffs", byDefault(t), probe.Passing, ""},
		{"sw", byDefault(t), probe.Blocked, "no way"},
		{"sws", byDefault(t), probe.Passing, ""},
		{"sffwf", byDefault(t), probe.Failing, "status code 503"},
		{"s--", byDefault(t), probe.Passing, ""},
		{"s---", byDefault(t), probe.Blocked, "silent"},
		{"sff---f", byDefault(t), probe.Failing, "status code 503"},
		{"ssssssssssfff", rates, probe.Passing, ""},
		{"ssssssssssffff", rates, probe.Failing, "status code 503"},
		{"fff", rates, probe.Undecided, "status code 503"},
		{"ffffsssssss", rates, probe.Failing, "status code 503"},
		{"ffffssssssss", rates, probe.Passing, ""},
		{"ssssssssssfffffffff", probe.Thresholds{Failure: 1}, probe.Passing, ""},
		{"ssssssssssffffffffff", probe.Thresholds{Failure: 1}, probe.Failing, "status code 503"},
		{"ffffffffffsssssssss", probe.Thresholds{Failure: 0.5, Healthy: 1}, probe.Failing, "status code 503"},
		{"ffffffffffssssssssss", probe.Thresholds{Failure: 0.5, Healthy: 1}, probe.Passing, ""},
	} {
		if got := after(c.story, c.thresholds); got.Result != c.want || got.Cause != c.cause || got.Made != (c.story != "") {
			t.Errorf("%q: %d, %q, made %t; want %d, %q", c.story, got.Result, got.Cause, got.Made, c.want, c.cause)
		}
	}
}

func TestTheLastSuccessIsThatBeforeTheFailures(t *testing.T) {
	if got := after("ssfff", byDefault(t)).LastSuccess; !got.Equal(noon.Add(time.Second)) {
		t.Errorf("%s", got)
	}
	flapping := probe.Thresholds{Failure: 0.3, Healthy: 0.7}
	before := after("ssssssssssffff", flapping).LastSuccess
	if got := after("ssssssssssffffsfsf", flapping).LastSuccess; !got.Equal(before) {
		t.Errorf("it changes while the Service fails, from %s to %s: each change would be a write", before, got)
	}
}

// TestASuccessNeverFailsAndAFailureNeverPasses asserts that a success never makes a Service Failing, and that a failure never
// makes it Passing. Outcomes without information about the target do not change the result.
func TestASuccessNeverFailsAndAFailureNeverPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		thresholds := drawThresholds(t)
		var h probe.History
		answered := probe.Undecided
		for i, letter := range rapid.SliceOfN(rapid.SampledFrom([]rune("sssfffw-")), 1, 60).Draw(t, "story") {
			h.Add(outcomes[letter], thresholds, noon.Add(time.Duration(i)*time.Second))
			is := h.Finding().Result
			switch {
			case is == probe.Blocked && (letter == 's' || letter == 'f'):
				t.Fatal("it cannot be probed after an answer")
			case is == probe.Blocked:
				continue
			case letter == 's' && is == probe.Failing && answered != probe.Failing:
				t.Fatal("a success makes it fail")
			case letter == 'f' && is == probe.Passing && answered != probe.Passing:
				t.Fatal("a failure makes it pass")
			case letter == '-' && is != answered:
				t.Fatal("silence changes what is known")
			}
			answered = is
		}
	})
}

// TestOnlyAnswersCount asserts that outcomes without information about the target do not count. After the next answer, the
// finding is the same as after the answers alone.
func TestOnlyAnswersCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		thresholds := drawThresholds(t)
		story := string(rapid.SliceOfN(rapid.SampledFrom([]rune("ssfffw-")), 0, 40).Draw(t, "story")) + rapid.SampledFrom([]string{"s", "f"}).Draw(t, "last")
		answers := strings.NewReplacer("w", "", "-", "").Replace(story)
		got, want := after(story, thresholds), after(answers, thresholds)
		if got.Result != want.Result || got.Cause != want.Cause {
			t.Fatalf("%q comes to %d, %q, and its answers alone to %d, %q", story, got.Result, got.Cause, want.Result, want.Cause)
		}
	})
}

// TestTenEqualOutcomesDecide asserts that ten failures make a Service Failing and ten successes make it Passing, after any story
// and with any thresholds.
func TestTenEqualOutcomesDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		thresholds := drawThresholds(t)
		story := string(rapid.SliceOfN(rapid.SampledFrom([]rune("sfw-")), 0, 40).Draw(t, "story"))
		if got := after(story+"ffffffffff", thresholds).Result; got != probe.Failing {
			t.Fatalf("%q and ten failures: %d", story, got)
		}
		if got := after(story+"ssssssssss", thresholds).Result; got != probe.Passing {
			t.Fatalf("%q and ten successes: %d", story, got)
		}
	})
}

// TestSlotsAreASecondApart asserts that slots are a second apart, that no slot is before its request, and that no slot is later
// than the slots before it require.
func TestSlotsAreASecondApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p probe.Pace
		var slots []time.Time
		now := noon
		for _, step := range rapid.SliceOfN(rapid.IntRange(0, 3000), 1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(step) * time.Millisecond)
			slot := p.Slot(now)
			if slot.Before(now) {
				t.Fatalf("a slot at %s for %s", slot, now)
			}
			if n := len(slots); n > 0 && slot.Sub(slots[n-1]) < probe.Gap {
				t.Fatalf("slots %s apart", slot.Sub(slots[n-1]))
			}
			if n := len(slots); slot.After(now) && (n == 0 || slot.Sub(slots[n-1]) > probe.Gap) {
				t.Fatal("a slot is given away")
			}
			slots = append(slots, slot)
		}
		if !slices.IsSortedFunc(slots, time.Time.Compare) {
			t.Fatal("who comes later is served first")
		}
	})
}

// TestJitterOnlyMakesProbesEarlier asserts that the next probe is never later than the interval, and at most a fifth of the
// interval earlier.
func TestJitterOnlyMakesProbesEarlier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.Int64Range(int64(time.Second), int64(24*time.Hour)).Draw(t, "interval"))
		pause := probe.Next(noon, interval, rapid.Float64Range(0, 1).Draw(t, "random")).Sub(noon)
		if pause > interval || pause < interval*4/5 {
			t.Fatalf("%s for an interval of %s", pause, interval)
		}
	})
}
