package sync_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/simulator"
)

// TestDocumentTakenOverByAnotherOwnerIsNotTouched asserts that the syncer notices another owner of a document before it writes.
// A list contains only our documents.
func TestDocumentTakenOverByAnotherOwnerIsNotTouched(t *testing.T) {
	linkedBefore := document("a", "Ready", linked("vnf-1"))
	claimed := document("a", "Ready", func(d *aai.Document) { d.Labels = linkedBefore.Labels })
	cases := map[string]struct{ before, after aai.Document }{
		"a change":             {document("a", "Ready"), document("a", "Failed")},
		"a relationship":       {claimed, linkedBefore},
		"a relationship fewer": {linkedBefore, claimed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.sync(c.before)
			w.advance(6 * time.Second)
			w.others("delete", key("a").Path(), nil)
			w.others("put", key("a").Path(), foreign)
			r := w.expectSync([]string{"GET a"}, c.after)
			w.expectObjects(map[string]string{"a": "Failed Conflict"}, r)
			if want, got := `"`+key("a").Path()+`" belongs to data-owner "CnfAdapter"`, r.Objects[key("a")].Message; got != want {
				t.Errorf("the message is %q, want %q", got, want)
			}
			w.expectStored(map[string][]string{"a": {"their=own"}})
		})
	}
	t.Run("a creation that A&AI has refused before", func(t *testing.T) {
		w := start(t)
		w.faults(simulator.Fault{Method: http.MethodPut, Status: http.StatusPreconditionFailed, Count: 3})
		w.expectObjects(map[string]string{"a": "Pending Unavailable"}, w.sync(document("a", "Ready")))
		w.others("put", key("a").Path(), foreign)
		w.syncer.Resync(tenant)
		w.expectObjects(map[string]string{"a": "Failed Conflict"}, w.expectSync([]string{"GET", "GET a"}, document("a", "Ready")))
	})
}

// TestDocumentThatKeepsChanging asserts that it is retried after growing pauses, and at once if the desired document changes or a
// resync is requested.
func TestDocumentThatKeepsChanging(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"), document("b", "Ready"))
	w.refuseWrites("a", http.StatusPreconditionFailed)
	// The versions come from a list; the deletions of a do not reach A&AI.
	r := w.expectSync([]string{"DELETE b", "GET", "GET", "GET a", "GET a"})
	w.expectObjects(map[string]string{"a": "Pending Unavailable"}, r)
	if o := r.Objects[key("a")]; !strings.Contains(o.Message, "keeps changing") {
		t.Errorf("got %+v", o)
	}
	var asked int
	for range 60 {
		asked += len(w.requests(func() { r = w.sync() }))
		w.advance(time.Second)
	}
	if asked > 14 || !r.NextPass.After(w.clock()) {
		t.Errorf("%d requests in a minute; the next pass is to begin at %s", asked, r.NextPass)
	}
	w.intercept = nil
	w.sync(document("a", "Failed"))
	w.expectStored(map[string][]string{"a": {"hs/status=Failed"}})
	w.refuseWrites("a", http.StatusPreconditionFailed)
	w.sync()
	w.intercept = nil
	w.expectSync(nil)
	w.syncer.Resync(tenant)
	w.sync()
	w.expectStored(map[string][]string{})
}
