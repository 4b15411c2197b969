package sync_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/healthscope/healthscope/aai"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

// takes is the time that A&AI takes for a request.
const takes = time.Second

// busyWorld is a world in which the desired documents change during passes. It measures how long a change takes to arrive in A&AI.
type busyWorld struct {
	*world

	mu sync.Mutex
	// pending are the changes that no pass has taken.
	pending map[aai.Key]aaisync.Desired
	// since are the times of the changes that are measured, and took the durations of those that have arrived.
	since map[aai.Key]time.Time
	took  []time.Duration
}

func startBusy(t *testing.T) *busyWorld {
	t.Helper()
	w := &busyWorld{world: start(t), pending: map[aai.Key]aaisync.Desired{}, since: map[aai.Key]time.Time{}}
	w.restart()
	return w
}

func (w *busyWorld) restart() {
	w.world.restart(func(o *aaisync.Options) { o.Clock, o.Audit = nil, w.arrive })
}

func numbered(n int, status string) aai.Document { return document(fmt.Sprintf("%04d", n), status) }

// want makes a document desired, and wakes a running pass.
func (w *busyWorld) want(d aai.Document) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[key(d.ID)] = aaisync.Desired{Document: &d, Seen: time.Now()}
	w.syncer.Wake(tenant)
}

// drop makes a document undesired, and wakes a running pass.
func (w *busyWorld) drop(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[key(id)] = aaisync.Desired{}
	w.syncer.Wake(tenant)
}

// failAfter changes a document to Failed after a time, and measures how long that takes to arrive.
func (w *busyWorld) failAfter(d time.Duration, n int) {
	time.AfterFunc(d, func() {
		w.want(numbered(n, "Failed"))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.since[key(numbered(n, "").ID)] = time.Now()
	})
}

// arrive records that a change was written.
func (w *busyWorld) arrive(e aaisync.WriteEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if since, measured := w.since[e.Key]; measured && e.Err == nil && slices.Contains(e.Labels, "hs/status=Failed") {
		w.took = append(w.took, time.Since(since))
		delete(w.since, e.Key)
	}
}

// pass runs a pass, after which so many objects must be synced. It returns the number of its requests, and how long the measured
// changes took, in order.
func (w *busyWorld) pass(synced int) (requests int, took []time.Duration) {
	w.t.Helper()
	before, changes := len(w.Requests()), 0
	w.took = nil
	r, err := w.syncer.Sync(w.t.Context(), tenant, func() aaisync.Change {
		w.mu.Lock()
		defer w.mu.Unlock()
		taken := w.pending
		w.pending = map[aai.Key]aaisync.Desired{}
		changes += len(taken)
		return aaisync.Change{Desired: taken}
	})
	if err != nil || r.Synced != synced || r.Pending > 0 || len(r.Changed) > changes {
		w.t.Fatalf("%d synced, %d pending, %d of %d changes are reported, %v", r.Synced, r.Pending, len(r.Changed), changes, err)
	}
	slices.Sort(w.took)
	return len(w.Requests()) - before, w.took
}

// slowWrites delays every write. before may return the response in place of A&AI, or take longer.
func (w *busyWorld) slowWrites(before func(*http.Request) *http.Response) {
	w.intercept = func(r *http.Request) (*http.Response, error) {
		if isWrite(r) {
			answer := before(r)
			if <-time.After(takes); answer != nil {
				return answer, nil
			}
		}
		return passOn()
	}
}

// TestChangeDoesNotWaitForBulkWrites changes resources continuously while a whole tenant is written for the first time.
func TestChangeDoesNotWaitForBulkWrites(t *testing.T) {
	const objects, every, changes = 2500, 850 * time.Millisecond, 20
	var once sync.Once
	cases := map[string]struct {
		before  func(*http.Request) *http.Response
		refused int
	}{
		"all is well": {func(*http.Request) *http.Response { return nil }, 0},
		"A&AI refuses some": {func(r *http.Request) *http.Response {
			if mentions(r, "0007") || mentions(r, "0777") {
				return answer(http.StatusBadRequest, nil, "")
			}
			return nil
		}, 2},
		"A&AI takes long for a request": {func(r *http.Request) *http.Response {
			if mentions(r, "1300") {
				once.Do(func() { <-time.After(30 * takes) })
			}
			return nil
		}, 0},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := startBusy(t)
				w.slowWrites(c.before)
				for n := range objects {
					w.want(numbered(n, "Ready"))
				}
				for n := range changes {
					w.failAfter(10*time.Second+time.Duration(n)*every, n*objects/changes)
				}
				requests, took := w.pass(objects - c.refused)
				if n := len(took); n != changes || took[n*95/100] > 3*takes {
					t.Errorf("%d changes arrived, after %s", n, took)
				}
				if requests > 100+2*changes {
					t.Errorf("%d requests", requests)
				}
			})
		})
	}
}

// TestChangeDoesNotWaitForHangingRequest changes resources while a request gets no response. A&AI refuses the first states of
// two of them: one changes after that, and one while the request is in flight.
func TestChangeDoesNotWaitForHangingRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startBusy(t)
		refused := map[string]bool{}
		w.slowWrites(func(r *http.Request) *http.Response {
			if mentions(r, "0001") {
				<-time.After(30 * takes)
			}
			for _, id := range []string{"0005", "0006"} {
				if mentions(r, id) && !refused[id] {
					refused[id] = true
					return answer(http.StatusBadRequest, nil, "")
				}
			}
			return nil
		})
		w.want(numbered(1, "Ready"))
		for n := range 3 {
			w.failAfter(time.Duration(1+8*n)*takes/2, 2+n)
		}
		for n := range 2 {
			time.AfterFunc(time.Duration(10+5*n)*takes, func() { w.want(numbered(5+n, "Ready")) })
		}
		w.failAfter(13*takes, 5)
		w.failAfter(15*takes+takes/2, 6)
		if _, took := w.pass(6); len(took) != 5 || took[4] > 3*takes {
			t.Errorf("changes arrived after %s", took)
		}
	})
}

// TestChangeDoesNotWaitForList changes resources while a whole tenant is listed, after a restart and again. After a restart, the
// other desired documents are found gradually during the list. It would be expensive to read each of them alone.
func TestChangeDoesNotWaitForList(t *testing.T) {
	const objects, every, changes = 1000, 700 * time.Millisecond, 13
	for _, restarts := range []bool{true, false} {
		t.Run(fmt.Sprintf("restart %t", restarts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := startBusy(t)
				for n := range objects {
					w.want(numbered(n, "Ready"))
				}
				w.pass(objects)
				w.syncer.Resync(tenant)
				if restarts {
					w.restart()
					for n := range objects {
						want := func() { w.want(numbered(n, "Ready")) }
						if n%10 != 5 {
							want()
						} else {
							time.AfterFunc(time.Duration(n)*9*time.Millisecond, want)
						}
					}
				}
				w.slow(takes, func(*http.Request) bool { return true }) // A page of the list has 100.
				for n := range changes {
					w.failAfter(takes+time.Duration(n)*every, n*objects/changes)
				}
				requests, took := w.pass(objects)
				if len(took) != changes || took[changes-1] > 3*takes {
					t.Errorf("%d changes arrived, after %s", len(took), took)
				}
				if requests > 11+2*changes { // This is a probe, ten pages, and two requests for each change.
					t.Errorf("%d requests", requests)
				}
			})
		})
	}
}

// TestFewChangesAreAppliedDuringList changes many resources while a tenant is listed. About 20 of them are read alone, the others
// wait for the list, and so does a deletion, because its limit depends on the number of documents.
func TestFewChangesAreAppliedDuringList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startBusy(t)
		for n := range 150 {
			w.want(numbered(n, "Ready"))
		}
		w.pass(150)
		w.syncer.Resync(tenant)
		w.slow(takes, isList)
		time.AfterFunc(takes/2, func() {
			for n := range 30 {
				w.want(numbered(n, "Failed"))
			}
			w.drop("0149")
		})
		requests := w.requests(func() { w.pass(149) })
		listed, reads, updates := slices.Index(requests, "GET"), 0, 0
		for i, r := range requests {
			if strings.HasPrefix(r, "GET ") {
				reads++
			}
			if strings.Contains(r, "UPDATE ") && i < listed {
				updates++
			}
		}
		if updates < 20 || reads > 20+aaisync.Parallelism || slices.Index(requests, "+ DELETE 0149") < listed {
			t.Errorf("%d updates before the list is read, %d reads: %q", updates, reads, requests)
		}
	})
}

// TestObjectThatChangesTwiceIsInTransactionOnce changes resources that wait for their turn once more. A&AI would refuse a transaction with two
// updates of one version, and the tenant would be listed again.
func TestObjectThatChangesTwiceIsInTransactionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startBusy(t)
		change := func(first, end int, status string) {
			for n := first; n < end; n++ {
				w.want(numbered(n, status))
			}
		}
		change(0, 40, "Ready")
		w.pass(40)
		w.slow(takes, func(*http.Request) bool { return true })
		change(39, 40, "Failed")
		time.AfterFunc(takes/10, func() { change(0, 30, "Pending") })
		time.AfterFunc(takes*5/2, func() { change(20, 30, "Failed") })
		updates := map[string]int{}
		for _, r := range w.requests(func() { w.pass(40) }) {
			if r == "GET" {
				t.Error("the tenant is listed again")
			}
			if _, id, isUpdate := strings.Cut(r, "UPDATE "); isUpdate {
				updates[id]++
			}
		}
		for n := range 30 {
			if id := numbered(n, "").ID; updates[id] != 1 {
				t.Errorf("%q is updated %d times", id, updates[id])
			}
		}
	})
}
