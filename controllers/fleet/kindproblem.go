package fleet

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/healthscope"
)

// doubtTime is how long something must be refused or missing before that is believed of what has been read:
// an API server that starts knows neither rights nor CRDs at first, and a Lease that is deleted is made anew by a monitor that lives.
const doubtTime = 10 * time.Second

// outageTime is how long a kind must fail to be read in other ways before that is
// believed: an API server that is restarted, or an API behind it, takes less.
const outageTime = time.Minute

// maxErrorText bounds the text of an error in a message, in bytes.
const maxErrorText = 200

// rightHint says how the controller gets the right to read a kind.
const rightHint = "to allow it, label a ClusterRole with these verbs: healthscope.core.oam.dev/aggregate-to-controller=true"

// problem is why the objects of a kind cannot be seen.
type problem struct {
	reason  healthscope.Reason
	message string
}

// outage says whether the kind fails to be read without having been refused.
func (p *problem) outage() bool { return p.reason == healthscope.ReasonNotSynced }

// fail notes why the kind cannot be seen, and tells if that is news.
func (w *kindWatch) fail(p *problem) {
	w.mu.Lock()
	now := time.Now()
	if w.doubts(p, now) {
		w.mu.Unlock()
		return
	}
	other := w.problem == nil || w.problem.reason != p.reason
	news := other || w.wording.changes(w.problem.message, p.message, now)
	if news {
		w.problem, w.wording = p, wording{}
	}
	if p.reason == healthscope.ReasonKindNotFound && w.unserved != nil {
		w.unserved()
	}
	w.mu.Unlock()
	if news {
		w.notify(w.Kind, types.NamespacedName{})
	}
}

// doubts says whether a problem is too young to be believed. The reflector tries
// again and again, so that it will be told of again. A refusal is believed at once of a kind that has never been read.
func (w *kindWatch) doubts(p *problem, now time.Time) bool {
	if w.failing.IsZero() {
		w.failing = now
	}
	if p.outage() {
		w.refused = time.Time{} // The API server may know nothing yet when it is back.
		if w.silent.IsZero() {
			w.silent = now
		}
		since := w.failing
		if w.problem != nil {
			since = w.silent // A refusal is not taken back because the API server is restarted.
		}
		return now.Sub(since) < outageTime
	}
	w.silent = time.Time{}
	if w.refused.IsZero() {
		w.refused = now
	}
	return w.synced && w.problem == nil && now.Sub(w.refused) < doubtTime
}

// readProblem says why a kind cannot be read; nil when it merely has to be read again from the start.
func readProblem(gvk schema.GroupVersionKind, err error) *problem {
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return nil
	case apierrors.IsForbidden(err):
		return &problem{healthscope.ReasonForbidden, fmt.Sprintf("the controller may not list and watch %s %s; %s", gvk.GroupVersion(), gvk.Kind, rightHint)}
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return &problem{healthscope.ReasonKindNotFound, fmt.Sprintf("the cluster does not serve %s %s for watching", gvk.GroupVersion(), gvk.Kind)}
	default:
		return &problem{healthscope.ReasonNotSynced, fmt.Sprintf("cannot list and watch %s %s: %s", gvk.GroupVersion(), gvk.Kind, shortened(err.Error()))}
	}
}
