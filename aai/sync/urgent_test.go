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

// TestAChangeDoesNotWaitForBulkWork has resources change all the time while all of a tenant is written for the first time.
func TestAChangeDoesNotWaitForBulkWork(t *testing.T) {
	const objects, request, every, changes = 5000, time.Second, 1700 * time.Millisecond, 20
	cases := map[string]func(w *world){
		"all is well": func(*world) {},
		"A&AI refuses some": func(w *world) {
			w.intercept = func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodGet && (mentions(r, "0007") || mentions(r, "0777")) {
					<-time.After(request)
					return answer(http.StatusBadRequest, nil, ""), nil
				}
				return nil, nil //nolint:nilnil // A&AI answers.
			}
		},
		"A&AI takes long for a request": func(w *world) {
			var once sync.Once
			w.intercept = func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodGet && mentions(r, "1300") {
					once.Do(func() { <-time.After(30 * request) })
				}
				return nil, nil //nolint:nilnil // A&AI answers.
			}
		},
	}
	for title, prepare := range cases {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t)
				prepare(w)
				waiting := newFlips()
				refuse := w.intercept
				w.intercept = func(r *http.Request) (*http.Response, error) {
					if refuse != nil {
						if answer, err := refuse(r); answer != nil {
							return answer, err
						}
					}
					if r.Method != http.MethodGet {
						<-time.After(request)
					}
					return nil, nil //nolint:nilnil // A&AI answers.
				}
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
				before := len(w.Requests())
				report, err := w.syncer.Sync(t.Context(), tenant, waiting.take)
				if err != nil || report.Pending > 0 {
					t.Fatalf("%d pending, %v", report.Pending, err)
				}
				slices.Sort(waiting.took)
				if n := len(waiting.took); n != changes || waiting.took[n*95/100] > 3*request {
					t.Errorf("%d changes arrived, after %s", n, waiting.took)
				}
				if n := len(w.Requests()) - before; n > 200+2*changes {
					t.Errorf("%d requests", n)
				}
				t.Logf("%d requests; changes arrived after %s", len(w.Requests())-before, waiting.took)
			})
		})
	}
}

// TestAChangeDoesNotWaitForARequestThatHangs has a resource change while the only request that is under way gets no answer.
func TestAChangeDoesNotWaitForARequestThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		waiting := newFlips()
		w.syncer = aaisync.New(aaisync.Options{Client: w.client, Plan: w.plan, Audit: waiting.arrive})
		w.intercept = func(r *http.Request) (*http.Response, error) {
			switch {
			case r.Method == http.MethodGet:
			case mentions(r, "0001"):
				<-time.After(30 * time.Second)
			default:
				<-time.After(time.Second)
			}
			return nil, nil //nolint:nilnil // A&AI answers.
		}
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
		if len(waiting.took) != 3 || slices.Max(waiting.took) > 3*time.Second {
			t.Errorf("changes arrived after %s", waiting.took)
		}
	})
}

func numbered(n int, status string) aai.Document { return document(fmt.Sprintf("%04d", n), status) }

// flips are changes on their way to A&AI.
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

// arrive notes that an object was written.
func (f *flips) arrive(w aaisync.Written) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if since, flipped := f.since[w.Key]; flipped && w.Err == nil && slices.Contains(w.Labels, "hs/status=Failed") {
		f.took = append(f.took, time.Since(since))
		delete(f.since, w.Key)
	}
}
