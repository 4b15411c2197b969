package sync_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/healthscope/healthscope/aai"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

// takes is the time that A&AI takes for a write.
const takes = time.Second

// slowly delays every write. before may return the response in place of A&AI, or take longer.
func (w *world) slowly(before func(*http.Request) *http.Response) {
	w.intercept = func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			answer := before(r)
			if <-time.After(takes); answer != nil {
				return answer, nil
			}
		}
		return nil, nil //nolint:nilnil // A&AI answers.
	}
}

// TestChangeDoesNotWaitForBulkWrites changes resources continuously while a whole tenant is written for the first time.
func TestChangeDoesNotWaitForBulkWrites(t *testing.T) {
	const objects, every, changes = 2500, 850 * time.Millisecond, 20
	var once sync.Once
	cases := map[string]func(*http.Request) *http.Response{
		"all is well": func(*http.Request) *http.Response { return nil },
		"A&AI refuses some": func(r *http.Request) *http.Response {
			if mentions(r, "0007") || mentions(r, "0777") {
				return answer(http.StatusBadRequest, nil, "")
			}
			return nil
		},
		"A&AI takes long for a request": func(r *http.Request) *http.Response {
			if mentions(r, "1300") {
				once.Do(func() { <-time.After(30 * takes) })
			}
			return nil
		},
	}
	for title, before := range cases {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t)
				w.slowly(before)
				waiting := newFlips()
				w.syncer = aaisync.New(aaisync.Options{Client: w.client, Plan: w.plan, Audit: waiting.arrive})
				for n := range objects {
					waiting.want(numbered(n, "Ready"))
				}
				for n := range changes {
					time.AfterFunc(10*time.Second+time.Duration(n)*every, func() {
						waiting.flip(numbered(n*objects/changes, "Failed"))
						w.syncer.Wake(tenant)
					})
				}
				asked := len(w.Requests())
				report, err := w.syncer.Sync(t.Context(), tenant, waiting.take)
				if err != nil || report.Pending > 0 {
					t.Fatalf("%d pending, %v", report.Pending, err)
				}
				slices.Sort(waiting.took)
				if n := len(waiting.took); n != changes || waiting.took[n*95/100] > 3*takes {
					t.Errorf("%d changes arrived, after %s", n, waiting.took)
				}
				if n := len(w.Requests()) - asked; n > 100+2*changes {
					t.Errorf("%d requests", n)
				}
				t.Logf("%d requests; changes arrived after %s", len(w.Requests())-asked, waiting.took)
			})
		})
	}
}

// TestChangeDoesNotWaitForHangingRequest changes a resource while the only request in flight gets no response.
func TestChangeDoesNotWaitForHangingRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		waiting := newFlips()
		w.syncer = aaisync.New(aaisync.Options{Client: w.client, Plan: w.plan, Audit: waiting.arrive})
		w.slowly(func(r *http.Request) *http.Response {
			if mentions(r, "0001") {
				<-time.After(30 * takes)
			}
			return nil
		})
		waiting.want(numbered(1, "Ready"))
		for n := range 3 {
			time.AfterFunc(time.Duration(1+8*n)*time.Second/2, func() {
				waiting.flip(numbered(2+n, "Failed"))
				w.syncer.Wake(tenant)
			})
		}
		if report, err := w.syncer.Sync(t.Context(), tenant, waiting.take); err != nil || report.Synced != 4 {
			t.Fatalf("%d synced, %v", report.Synced, err)
		}
		if len(waiting.took) != 3 || slices.Max(waiting.took) > 3*takes {
			t.Errorf("changes arrived after %s", waiting.took)
		}
	})
}

// TestChangeDoesNotWaitForList changes resources while a whole tenant is listed, after a restart and again. After a restart, the
// other desired documents are found gradually during the list. It would be expensive to read each of them alone.
func TestChangeDoesNotWaitForList(t *testing.T) {
	const objects, every, changes = 1000, 700 * time.Millisecond, 13
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		waiting := newFlips()
		restart := func(found func(n int, want func())) {
			w.syncer = aaisync.New(aaisync.Options{Client: w.client, Plan: w.plan, Audit: waiting.arrive})
			for n := range objects {
				found(n, func() {
					waiting.want(numbered(n, "Ready"))
					w.syncer.Wake(tenant)
				})
			}
		}
		pass := func() {
			report, err := w.syncer.Sync(t.Context(), tenant, waiting.take)
			if err != nil || report.Synced != objects || report.Pending > 0 {
				t.Fatalf("%d synced, %d pending, %v", report.Synced, report.Pending, err)
			}
		}
		restart(func(_ int, want func()) { want() })
		pass()
		for _, restarts := range []bool{true, false} {
			if w.syncer.Resync(tenant); restarts {
				restart(func(n int, want func()) {
					if n%10 != 5 {
						want()
					} else {
						time.AfterFunc(time.Duration(n)*9*time.Millisecond, want)
					}
				})
			}
			w.intercept = func(*http.Request) (*http.Response, error) { // A page of the list has 100.
				<-time.After(takes)
				return nil, nil //nolint:nilnil // A&AI answers.
			}
			for n := range changes {
				time.AfterFunc(takes+time.Duration(n)*every, func() {
					waiting.flip(numbered(n*objects/changes, "Failed"))
					w.syncer.Wake(tenant)
				})
			}
			asked, began := len(w.Requests()), time.Now()
			pass()
			slices.Sort(waiting.took)
			requests := len(w.Requests()) - asked
			t.Logf("%d requests in %s; changes arrived after %s", requests, time.Since(began), waiting.took)
			if len(waiting.took) != changes {
				t.Fatalf("%d changes arrived", len(waiting.took))
			}
			if most := waiting.took[changes-1]; most > 3*takes || requests > 11+2*changes { // This is a probe, ten pages, and two requests for each change.
				t.Errorf("changes arrived after up to %s, with %d requests", most, requests)
			}
			waiting.took, w.intercept = nil, nil
			for n := range changes {
				waiting.want(numbered(n*objects/changes, "Ready"))
			}
			pass()
		}
	})
}

// TestFailureDuringListIsReported relates a resource to a VNF that does not exist, while its tenant is listed.
func TestFailureDuringListIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		waiting := newFlips()
		w.syncer = aaisync.New(aaisync.Options{Client: w.client, Plan: w.plan})
		waiting.want(document("a", "Ready"))
		if _, err := w.syncer.Sync(t.Context(), tenant, waiting.take); err != nil {
			t.Fatal(err)
		}
		w.syncer.Resync(tenant)
		w.intercept = func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("resultIndex") {
				waiting.want(document("a", "Failed", linked("vnf-9")))
				w.syncer.Wake(tenant)
				<-time.After(takes)
			}
			return nil, nil //nolint:nilnil // A&AI answers.
		}
		report, err := w.syncer.Sync(t.Context(), tenant, waiting.take)
		if o := report.Changed[key("a")]; err != nil || o.Reason != aaisync.ReasonMissingDependency {
			t.Errorf("got %+v, %v", o, err)
		}
	})
}

func numbered(n int, status string) aai.Document { return document(fmt.Sprintf("%04d", n), status) }

// flips are changes that have not arrived in A&AI yet, and the times that others took.
type flips struct {
	mu      sync.Mutex
	pending map[aai.Key]aaisync.Desired
	since   map[aai.Key]time.Time
	took    []time.Duration
}

func newFlips() *flips {
	return &flips{pending: map[aai.Key]aaisync.Desired{}, since: map[aai.Key]time.Time{}}
}

func (f *flips) want(d aai.Document) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending[key(d.ID)] = aaisync.Desired{Document: &d, Seen: time.Now()}
}

func (f *flips) flip(d aai.Document) {
	f.want(d)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since[key(d.ID)] = time.Now()
}

func (f *flips) take() aaisync.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.pending
	f.pending = map[aai.Key]aaisync.Desired{}
	return aaisync.Change{Desired: taken}
}

// arrive records that a change was written.
func (f *flips) arrive(w aaisync.WriteEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if since, flipped := f.since[w.Key]; flipped && w.Err == nil && slices.Contains(w.Labels, "hs/status=Failed") {
		f.took = append(f.took, time.Since(since))
		delete(f.since, w.Key)
	}
}
