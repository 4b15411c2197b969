package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/healthscope/healthscope/healthscope"
)

// The reasons of events on the Secrets of clusters, besides the values of Reachability.
const (
	// eventRefused is for a kubeconfig that is refused.
	eventRefused = "KubeconfigRefused"
	// eventRotationFailed is for a new kubeconfig that does not work.
	eventRotationFailed = "RotationFailed"
	// eventNameRefused is for a Secret that cannot have the cluster name it requests.
	eventNameRefused = "NameRefused"
)

// maxNote is the maximum length of an event's note in bytes. Kubernetes rejects an event whose note exceeds 1 KiB.
const maxNote = 1000

// eventAction is the action of all events on the Secrets of clusters.
const eventAction = "Connect"

// secretEvents records events on the Secrets of clusters while this replica leads. Until then it keeps the last warning about
// each Secret as long as the warning holds. It is safe for concurrent use.
type secretEvents struct {
	recorder events.EventRecorder

	mu sync.Mutex
	// recording is true while this replica leads.
	recording bool
	// pending holds the warnings that have not been recorded, by the UID of the Secret.
	pending map[types.UID]pendingEvent
}

// recordf records an event on the Secret of a cluster, if it has one. It records no warnings for a cluster under maintenance.
func (e *secretEvents) recordf(spec clusterSpec, eventType, reason, format string, args ...any) {
	if spec.secret == nil || spec.maintenance != "" && eventType == corev1.EventTypeWarning {
		return
	}
	event := pendingEvent{spec.secret, eventType, reason, healthscope.Shorten(fmt.Sprintf(format, args...), maxNote)}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pending, spec.secret.UID)
	switch {
	case e.recording:
		event.record(e.recorder)
	case eventType == corev1.EventTypeWarning:
		if e.pending == nil {
			e.pending = map[types.UID]pendingEvent{}
		}
		e.pending[spec.secret.UID] = event
	}
}

// drop drops the pending warning about a Secret, because it does not hold any more. With reasons, it drops only a warning with
// one of them.
func (e *secretEvents) drop(spec clusterSpec, reasons ...string) {
	if spec.secret == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(reasons) == 0 || slices.Contains(reasons, e.pending[spec.secret.UID].reason) {
		delete(e.pending, spec.secret.UID)
	}
}

// pendingEvent is an event on the Secret of a cluster that has not been recorded yet.
type pendingEvent struct {
	secret                     *corev1.ObjectReference
	eventType, reason, message string
}

func (event pendingEvent) record(recorder events.EventRecorder) {
	recorder.Eventf(event.secret, nil, event.eventType, event.reason, eventAction, "%s", event.message)
}

// run records events until ctx ends, and first those that are pending. Only the leader calls it.
func (e *secretEvents) run(ctx context.Context) error {
	e.startRecording()
	<-ctx.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recording = false
	return nil
}

// startRecording records the pending warnings, and enables the recording of further events.
func (e *secretEvents) startRecording() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recording = true
	for _, event := range e.pending {
		event.record(e.recorder)
	}
	e.pending = nil
}
