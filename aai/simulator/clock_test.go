package simulator

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

func (h *harness) millis(uri string) int64 {
	h.t.Helper()
	n, err := strconv.ParseInt(h.version(uri), 10, 64)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func TestVersionsFollowTheClockAndNeverGoBack(t *testing.T) {
	h := newHarness(t, Options{})
	h.AdvanceClock(time.Hour)
	h.must(put1(pod, podBody))
	diff(t, "an hour later", base.Add(time.Hour).UnixMilli(), h.millis(pod))
	diff(t, "Now", base.Add(time.Hour), h.Now())
	h.AdvanceClock(-2 * time.Hour)
	h.must(patch1(pod, `{"kind":"Job"}`))
	diff(t, "after a step back", base.Add(time.Hour).UnixMilli()+1, h.millis(pod))
	diff(t, "Now", base.Add(-time.Hour), h.Now())
}

// Two writes in one millisecond have one version, so the second of two clients overwrites the first unnoticed.
func TestSameMillisecondLosesAnUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		same   bool
		status int
		kind   string
	}{"on": {true, 200, "Mine"}, "off": {false, 412, "Theirs"}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{Clock: time.Now})
			h.SameMillisecond(tc.same)
			h.must(put1(pod, podBody))
			read := h.version(pod)
			update := func(kind string) call {
				return put1(pod, strings.Replace(podBody, `"Pod"`, `"`+kind+`","resource-version":"`+read+`"`, 1))
			}
			h.must(update("Theirs"))
			diff(t, "status of the second", tc.status, h.send(update("Mine")).status)
			diff(t, "kind", any(tc.kind), h.document(pod)["kind"])
		})
	}
}

func TestOldVersionsComeAgainWhenTheClockIsSetBack(t *testing.T) {
	h := newHarness(t, Options{})
	h.SameMillisecond(true)
	h.AdvanceClock(time.Minute)
	h.must(put1(pod, podBody))
	first := h.version(pod)
	h.AdvanceClock(time.Second)
	h.must(patch1(pod, `{"kind":"Job"}`))
	if h.version(pod) <= first {
		t.Errorf("a second later the version is %s, before it was %s", h.version(pod), first)
	}
	h.AdvanceClock(-time.Second)
	h.must(patch1(pod, `{"kind":"Cron"}`))
	diff(t, "version", first, h.version(pod))
	h.SameMillisecond(false)
	h.must(patch1(pod, `{"kind":"Job"}`))
	if h.millis(pod) <= base.Add(time.Minute+time.Second).UnixMilli() {
		t.Errorf("with the option off, version %s was there before", h.version(pod))
	}
}

func TestClockOnTheControlSurface(t *testing.T) {
	h := newHarness(t, Options{})
	state := func() clockState { return decodeInto[clockState](t, h.control("GET", "/__sim/clock", "").body) }
	diff(t, "at first", false, state().SameMS)
	diff(t, "status", http.StatusNoContent, h.control("POST", "/__sim/clock", `{"advance":"90m"}`).status)
	diff(t, "advanced", base.Add(90*time.Minute).UnixMilli(), state().Now.UnixMilli())
	diff(t, "status", http.StatusNoContent, h.control("POST", "/__sim/clock", `{"same-ms":true,"advance":"-30m"}`).status)
	diff(t, "set back", base.Add(time.Hour).UnixMilli(), state().Now.UnixMilli())
	diff(t, "same-ms", true, state().SameMS)
	for name, bad := range map[string]string{"no duration": `{"advance":"soon"}`, "unknown field": `{"step":"1s"}`, "no object": `[]`} {
		diff(t, name, http.StatusBadRequest, h.control("POST", "/__sim/clock", bad).status)
	}
	diff(t, "after refusals", base.Add(time.Hour).UnixMilli(), state().Now.UnixMilli())
}
