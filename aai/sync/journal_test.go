package sync_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/simulator"
)

// anyVersion is a resource-version with which A&AI deletes an object in any version.
const anyVersion = "38cf3090-6a0c-4e9d-8142-4332a7352846"

// checkJournal checks the rules for all requests that this project has sent, in any situation.
func (w *world) checkJournal() {
	w.t.Helper()
	ids := map[string]simulator.Request{}
	var left time.Time // A&AI has asked for no requests until then.
	var asked time.Time
	for _, r := range w.Requests() {
		w.checkHeaders(r)
		id := r.Header.Get("X-TransactionId")
		// When a connection breaks, Go's transport repeats a GET.
		if before, used := ids[id]; used && (r.Method != http.MethodGet || before.Path != r.Path || before.Query != r.Query || before.Status != 0) {
			w.t.Errorf("X-TransactionId %q is used twice", id)
		}
		ids[id] = r
		w.checkWrites(r)
		if r.Time.After(asked) && r.Time.Before(left) {
			w.t.Errorf("%s %s was sent at %s, though A&AI had asked at %s to be left alone until %s", r.Method, r.Path, r.Time, asked, left)
		}
		if r.Status == http.StatusTooManyRequests {
			asked, left = r.Time, r.Time.Add(tooManyWait)
		}
	}
}

// checkHeaders checks the headers of a request.
func (w *world) checkHeaders(r simulator.Request) {
	w.t.Helper()
	want := map[string]string{"X-FromAppId": "HealthScope", "Accept": "application/json", "Authorization": "REDACTED", "Content-Type": ""}
	switch {
	case r.Method == http.MethodPatch:
		want["Content-Type"] = "application/merge-patch+json"
	case r.Body != "":
		want["Content-Type"] = "application/json"
	}
	for name, value := range want {
		if got := r.Header.Get(name); got != value && (name != "Content-Type" || r.Body != "") {
			w.t.Errorf("%s of %s %s is %q, want %q", name, r.Method, r.Path, got, value)
		}
	}
	if _, err := uuid.Parse(r.Header.Get("X-TransactionId")); err != nil {
		w.t.Errorf("X-TransactionId of %s %s: %v", r.Method, r.Path, err)
	}
}

// checkWrites checks the number of writes in a request, and each write.
func (w *world) checkWrites(r simulator.Request) {
	w.t.Helper()
	if r.Method == http.MethodGet {
		return
	}
	ops, err := operationsOf(r)
	if err != nil {
		w.t.Errorf("the body of %s %s cannot be read: %v", r.Method, r.Path, err)
	}
	if n := len(ops); n == 0 || n > client.MaxBulk {
		w.t.Errorf("%d operations in one request", n)
	}
	for _, op := range ops {
		w.checkWrite(op)
	}
}

// checkWrite checks that a write concerns an object of the test's tenant or a module, deletes only a known version, and stores
// only documents of ours.
func (w *world) checkWrite(op requestOperation) {
	w.t.Helper()
	// The id of the other tenant in these tests begins like that of the first.
	if !strings.HasPrefix(op.URI, tenant.Path()) && !strings.Contains(op.URI, "/vf-module/") {
		w.t.Errorf("%s of %s, which is no matter of ours", op.Action, op.URI)
	}
	if strings.Contains(op.URI, "/relationship-list/") {
		return
	}
	_, version, _ := strings.Cut(op.URI, "?resource-version=")
	switch {
	case op.Action == "delete" && (version == "" || version == anyVersion):
		w.t.Errorf("deletion of %s in the version %q", op.URI, version)
	case op.Action == "put" && op.Body["data-owner"] != owner:
		w.t.Errorf("a document of others is stored: %v", op.Body)
	case op.Action == "patch" && !strings.Contains(op.URI, "/vf-module/"):
		w.t.Errorf("%s is patched, for which A&AI compares no version", op.URI)
	}
}

// lanes detects overlapping writes to an object.
type lanes struct {
	mu   sync.Mutex
	busy map[string]int
	// overlaps are the ids of objects with overlapping writes.
	overlaps []string
}

// enter records that a request begins, and returns a function that records its end.
func (l *lanes) enter(r simulator.Request) (leave func()) {
	if r.Method == http.MethodGet {
		return func() {}
	}
	var ids []string
	ops, _ := operationsOf(r) // checkWrites reports the error.
	for _, op := range ops {
		ids = append(ids, op.object())
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	l.count(ids, 1)
	return func() { l.count(ids, -1) }
}

func (l *lanes) count(ids []string, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy == nil {
		l.busy = map[string]int{}
	}
	for _, id := range ids {
		if l.busy[id] += by; l.busy[id] > 1 {
			l.overlaps = append(l.overlaps, id)
		}
	}
}

// checkLanes checks that no writes to an object have overlapped.
func (w *world) checkLanes() {
	w.t.Helper()
	w.lanes.mu.Lock()
	defer w.lanes.mu.Unlock()
	if len(w.lanes.overlaps) > 0 {
		w.t.Errorf("writes to %q overlapped", w.lanes.overlaps)
	}
}
