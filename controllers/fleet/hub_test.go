package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestViewIsCompleteOnlyWithAllClusters reads the view at the moment when it reports that it knows all clusters. A cluster that
// came later would count as removed and without bundles, and everything that is kept for it would be deleted.
func TestViewIsCompleteOnlyWithAllClusters(t *testing.T) {
	t.Parallel()
	const members = 200
	ctx, cancel := context.WithCancel(t.Context())
	h := &hub{ctx: ctx, members: map[string]*member{}, environment: &environment{
		view: newView("local"), clock: clock.RealClock{},
		options: Options{ClusterName: "local", Members: &Members{Parse: func([]byte) (*rest.Config, error) { return nil, errors.New("not today") }}},
	}}
	defer h.running.Wait()
	defer cancel()
	secrets := make([]*corev1.Secret, 0, members)
	for i := range members {
		secrets = append(secrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("edge%03d", i)}})
	}
	known := 0
	stop := whileRunning(func() {
		if known == 0 && h.view.Complete() {
			known = len(h.view.Clusters())
		}
	})
	h.reconcile(secrets, logr.Discard())
	if stop(); known != members+1 {
		t.Errorf("%d of %d clusters are known when the view says that it knows all", known, members+1)
	}
	if h.view.CompleteForAll("edge000") {
		t.Error("a cluster that has not been read yet counts as one whose bundles are all known")
	}
}

// TestHubReturnsWhenItFails has a hub whose watch of the Secrets fails. It must return the error, and not wait for members that
// are never stopped.
func TestHubReturnsWhenItFails(t *testing.T) {
	t.Parallel()
	lost := errors.New("no informer today")
	h := &hub{
		environment: &environment{view: newView("local"), clock: clock.RealClock{}, options: Options{ClusterName: "local"}, config: &rest.Config{Host: "https://127.0.0.1:1"}},
		members:     map[string]*member{}, secrets: &secretWatch{cache: noInformer{err: lost}, changed: make(chan struct{}, 1)},
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Start(t.Context()) }()
	select {
	case err := <-ended:
		if !errors.Is(err, lost) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
}

// noInformer is a cache without informers.
type noInformer struct {
	cache.Cache

	err error
}

func (c noInformer) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, c.err
}

// TestOnlyTheLeaderRecordsEvents has a hub report warnings before, while and after it leads. Warnings from before it leads are
// recorded when it leads, if they still hold.
func TestOnlyTheLeaderRecordsEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, onlyTheLeaderRecordsEvents)
}

func onlyTheLeaderRecordsEvents(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	e := &secretEvents{recorder: recorder}
	of := func(name string) clusterSpec {
		return clusterSpec{name: name, secret: &corev1.ObjectReference{Name: name, UID: types.UID(name)}}
	}
	expect := func(when string, want ...string) {
		t.Helper()
		var got []string
		for len(recorder.Events) > 0 {
			got = append(got, <-recorder.Events)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: recorded %q, want %q", when, got, want)
		}
	}
	e.recordf(of("refused"), corev1.EventTypeWarning, eventRefused, "no %s", "server")
	e.recordf(of("corrected"), corev1.EventTypeWarning, eventRefused, "no server")
	e.recordf(of("corrected"), corev1.EventTypeNormal, string(Connected), "all is well")
	maintained := of("maintained")
	maintained.maintenance = "new disks"
	e.recordf(maintained, corev1.EventTypeWarning, string(Unreachable), "no answer")
	e.recordf(of("removed"), corev1.EventTypeWarning, eventNameRefused, "bad name")
	e.drop(of("removed"))
	e.recordf(of("lost"), corev1.EventTypeWarning, string(MonitorMissing), "no Lease")
	e.drop(of("lost"), eventRefused, eventRotationFailed) // Its credentials have been renewed, but it is still lost.
	expect("before it leads")

	lead := func() (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.run(ctx) }()
		synctest.Wait()
		return func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	end := lead()
	expect("when it is elected", "Warning KubeconfigRefused no server", "Warning MonitorMissing no Lease")
	e.recordf(of("later"), corev1.EventTypeWarning, string(Unreachable), "no answer")
	e.recordf(of("later"), corev1.EventTypeNormal, string(Connected), "all is well")
	expect("while it leads", "Normal Connected all is well", "Warning Unreachable no answer")
	end()
	e.recordf(of("later"), corev1.EventTypeWarning, string(Unreachable), "the Lease was lost")
	e.recordf(of("other"), corev1.EventTypeNormal, string(Connected), "all is well")
	expect("after it has led")
	end = lead()
	expect("when it is elected again", "Warning Unreachable the Lease was lost")
	end()
}

// TestEventNotesAreShortened has a kubeconfig with a longer error than an event may contain. The event must still be recorded,
// before and after this replica leads.
func TestEventNotesAreShortened(t *testing.T) {
	t.Parallel()
	recorder := events.NewFakeRecorder(10)
	e := &secretEvents{recorder: recorder}
	w := clusterSpec{secret: &corev1.ObjectReference{UID: "edge"}}
	problems := strings.Repeat("users[ä].user.exec: Forbidden, ", 100)
	e.recordf(w, corev1.EventTypeWarning, eventRefused, "%s", problems)
	e.startRecording()
	e.recordf(w, corev1.EventTypeWarning, eventRefused, "x%s", problems) // This note is cut elsewhere, possibly within a character.
	e.recordf(w, corev1.EventTypeWarning, eventRefused, "%s", problems[:maxNote])
	for _, want := range []string{problems[:900], "x" + problems[:900], problems[:maxNote]} {
		note := strings.TrimPrefix(<-recorder.Events, "Warning "+eventRefused+" ")
		if len(note) > 1024 || !utf8.ValidString(note) || !strings.HasPrefix(note, want) {
			t.Errorf("a note of %d bytes: %q", len(note), note)
		}
	}
}
