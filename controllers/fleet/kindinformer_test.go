package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope"
)

var (
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	shopWeb     = types.NamespacedName{Namespace: "shop", Name: "web"}
)

// kindFixture is an Objects that watches one kind of a cluster whose discovery never answers. The test reports the results of its
// requests.
type kindFixture struct {
	*Objects

	t *testing.T
	w *kindInformer
	// notified are the added changes.
	notified *Subscription
}

// withKindFixture runs a test in a synctest bubble.
func withKindFixture(t *testing.T, test func(k *kindFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k := &kindFixture{Objects: NewObjects(nil, nil), t: t}
		k.setState(ClusterState{Name: "local", Reachability: Connected})
		k.clusters["local"].clients.Store(&clusterClients{
			client: struct{ dynamic.Interface }{}, discovery: &apiDiscovery{clock: k.clock, sem: semaphore.NewWeighted(0)},
		})
		k.notified = k.Start(ctx)
		kind := Kind{"local", deployments}
		k.Want(types.NamespacedName{Name: "scope"}, map[Kind]struct{}{kind: {}})
		k.w = k.kinds[informerKey{Kind: kind}]
		test(k)
		cancel()
		synctest.Wait()
	})
}

// report reports events, with a pause after each.
func (k *kindFixture) report(pause time.Duration, events ...observe.Event) {
	for _, e := range events {
		k.w.informer.Tracker.Report(e)
		<-time.After(pause)
		synctest.Wait()
	}
}

// read stores the given objects as the complete list, and reports that it has been read.
func (k *kindFixture) read(objects ...any) {
	if err := k.w.store.Replace(objects, ""); err != nil {
		k.t.Fatal(err)
	}
	k.report(0, observe.Event{Kind: observe.Watching}, observe.Event{Kind: observe.Listed})
	k.report(time.Second, observe.Event{})
}

// expect asserts the lookup of Deployment web.
func (k *kindFixture) expect(want healthscope.State, reason healthscope.Reason, last healthscope.State, settling bool) {
	k.t.Helper()
	synctest.Wait()
	got := k.Get("local", deployments, shopWeb)
	if got.Result.State != want || got.Result.Reason != reason || got.LastState != last || got.Syncing != settling {
		k.t.Errorf("got %s %s, last %q, settling %t: %s", got.Result.State, got.Result.Reason, got.LastState, got.Syncing, got.Result.Message)
	}
	k.expectSelected(got)
}

// expectSelected asserts that a selector finds Deployment web with the same lookup when it has been read. Otherwise the result
// for objects that have not been read must be that of web.
func (k *kindFixture) expectSelected(web Lookup) {
	k.t.Helper()
	selected := k.Select("local", deployments, shopWeb.Namespace, labels.SelectorFromSet(labels.Set{"app": "web"}))
	found := selected.Others
	if len(selected.Objects) > 0 {
		found = selected.Objects[0]
	}
	found.Result.Name, found.Result.Message, web.Result.Message = web.Result.Name, "", ""
	if diff := cmp.Diff(web, found); diff != "" {
		k.t.Errorf("what a selector finds is not what is known of the object (-known +found):\n%s", diff)
	}
	if n := len(k.Select("local", deployments, shopWeb.Namespace, labels.SelectorFromSet(labels.Set{"app": "other"})).Objects); n > 0 {
		k.t.Errorf("%d objects are found by another label", n)
	}
}

func readyWeb() any {
	return keptResult(shopWeb, healthscope.Result{Key: healthscope.Key{Name: shopWeb.Name}, State: healthscope.Ready, UID: "u"})
}

// keptResult returns the cache entry of an object with the label app.
func keptResult(name types.NamespacedName, result healthscope.Result) any {
	return &observe.Entry[*Lookup]{
		PartialObjectMetadata: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}},
		Value:                 &Lookup{Result: result, Labels: NewLabelSet(map[string]string{"app": name.Name})},
	}
}

func TestUnreadableKindHasAReason(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	w := &kindInformer{informerKey: informerKey{Kind: Kind{"local", deployments}}}
	for name, c := range map[string]struct {
		reason string
		err    error
		want   healthscope.Reason
	}{
		"Forbidden":    {"the user has to grant a right", apierrors.NewForbidden(resource, "", errors.New("no")), healthscope.ReasonForbidden},
		"NotFound":     {"the CRD has gone", apierrors.NewNotFound(resource, ""), healthscope.ReasonKindNotFound},
		"NotWatchable": {"some aggregated APIs cannot be watched", apierrors.NewMethodNotSupported(resource, "list"), healthscope.ReasonKindNotFound},
		"Timeout":      {"the API server is slow", apierrors.NewTimeoutError("slow", 1), healthscope.ReasonNotSynced},
		"Unreachable":  {"the API server is away", fmt.Errorf("cannot dial: %w", http.ErrServerClosed), healthscope.ReasonNotSynced},
		"Unavailable":  {"the API behind it is away", apierrors.NewServiceUnavailable("no endpoints"), healthscope.ReasonNotSynced},
		"Broken":       {"a conversion webhook fails", apierrors.NewInternalError(errors.New(strings.Repeat("conversion webhook ", 100))), healthscope.ReasonNotSynced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, reason := observe.Classify(c.err)
			message := w.describe(reason, c.err)
			if got := w.reasonOf(reason); got != c.want || !strings.Contains(message, "apps/v1 Deployment") || len(message) > 256 {
				t.Errorf("%s: want %q and the name of the kind, got %q: %q", c.reason, c.want, got, message)
			}
		})
	}
}

func TestForbiddenKindHasAHint(t *testing.T) {
	t.Parallel()
	const role, add = "label a ClusterRole with these verbs: healthscope.core.oam.dev/aggregate-to-controller=true", "to allow it: healthscope clusters add edge --context CONTEXT --workloads, with the other flags that the cluster was added with"
	for at, want := range map[Kind]string{
		{"edge", deployments}: add,
		{"edge", schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}: role,
		{"local", deployments}: role,
	} {
		o := NewObjects(nil, nil)
		o.setState(ClusterState{Name: "local", Local: true, Reachability: Connected})
		w := newKindInformer(o.kindOptions, informerKey{Kind: at}, o.ensureCluster(at.Cluster).state.Local, nil, func() {})
		if got := w.describe(observe.Forbidden, nil); !strings.HasSuffix(got, want) {
			t.Errorf("%v: want %q at the end, got %q", at, want, got)
		}
	}
}

// TestArrivingWhileTheAPIServerAnswers: objects are arriving while the API server responds, not before, and not after an attempt
// to read them has failed.
func TestArrivingWhileTheAPIServerAnswers(t *testing.T) {
	t.Parallel()
	withKindFixture(t, func(k *kindFixture) {
		expect := func(when string, want bool) {
			if got := k.Get("local", deployments, shopWeb); got.Listing != want || !got.Syncing {
				t.Errorf("%s: arriving %t, settling %t; want %t, true", when, got.Listing, got.Syncing, want)
			}
		}
		expect("before an answer", false)
		k.w.informer.Answered()
		expect("after the first answer", true)
		k.report(time.Second, observe.Event{Kind: observe.Failed, Message: "no route"})
		expect("after a failure", false)
	})
}

// TestObjectsOfAKindThatCannotBeRead: objects that can no longer be read are Unknown, with the reason, from the time when this
// is confirmed. Each change is notified once.
func TestObjectsOfAKindThatCannotBeRead(t *testing.T) {
	t.Parallel()
	withKindFixture(t, func(k *kindFixture) {
		forbidden := observe.Event{Kind: observe.Refused, Reason: observe.Forbidden, Message: "no right"}
		failed := observe.Event{Kind: observe.Failed, Message: "no route"}
		k.expect(healthscope.Unknown, healthscope.ReasonNotSynced, "", true)
		k.report(2*time.Second, forbidden, forbidden)
		k.expect(healthscope.Unknown, healthscope.ReasonForbidden, "", false)
		if got := k.notified.Take(); len(got) != 1 {
			t.Errorf("notified of %v, and not once that it is forbidden", got)
		}
		k.read(readyWeb())
		k.expect(healthscope.Ready, "", "", false)
		k.report(9*time.Second, forbidden)
		k.expect(healthscope.Ready, "", "", false)
		k.report(2*time.Second, forbidden, forbidden)
		k.expect(healthscope.Unknown, healthscope.ReasonForbidden, "", false)
		k.read()
		k.expect(healthscope.NotPresent, healthscope.ReasonNotFound, "", false)
		k.report(50*time.Second, failed)
		k.expect(healthscope.NotPresent, healthscope.ReasonNotFound, "", false)
		k.notified.Take()
		k.report(20*time.Second, failed, failed, failed)
		k.expect(healthscope.Unknown, healthscope.ReasonNotSynced, "", false)
		if got := k.notified.Take(); len(got) != 1 {
			t.Errorf("notified of %v that it cannot be read", got)
		}
	})
}

// TestDiscoveryOfAKindThatIsGone: discovery is asked again after the first answer that a kind is not served any more, and then at each
// attempt until that is confirmed. All kinds of an operator go together, and share its answers.
func TestDiscoveryOfAKindThatIsGone(t *testing.T) {
	t.Parallel()
	withKindFixture(t, func(k *kindFixture) {
		k.read(readyWeb())
		refused := time.Now()
		k.report(maxDiscoveryAge/2, observe.Event{Kind: observe.Refused, Reason: observe.NotServed})
		if got := k.w.discoveredAfter(); !got.Equal(refused) {
			t.Errorf("an answer %s after the refusal counts", got.Sub(refused))
		}
		k.report(observe.ConfirmAfter/2, observe.Event{Kind: observe.Refused, Reason: observe.NotServed})
		if got := time.Since(k.w.discoveredAfter()); got != maxDiscoveryAge {
			t.Errorf("until it is confirmed, an answer may be %s old", got)
		}
		k.report(observe.ConfirmAfter, observe.Event{Kind: observe.Refused, Reason: observe.NotServed}, observe.Event{Kind: observe.Refused, Reason: observe.NotServed})
		if got := time.Since(k.w.discoveredAfter()); got != DefaultFindInterval/2 {
			t.Errorf("once it is confirmed, an answer may be %s old", got)
		}
	})
}

// TestObjectsOfAnUnreachableCluster asserts that objects keep their last state while their cluster is unreachable, and until
// they have been read again.
func TestObjectsOfAnUnreachableCluster(t *testing.T) {
	t.Parallel()
	withKindFixture(t, func(k *kindFixture) {
		state := func(r Reachability) { k.setState(ClusterState{Name: "local", Reachability: r, Since: time.Now()}) }
		k.read(readyWeb())
		state(MonitorStale)
		k.expect(healthscope.Ready, "", "", false)
		k.notified.Take()
		state(Unreachable)
		k.expect(healthscope.Unknown, healthscope.ReasonClusterUnreachable, healthscope.Ready, false)
		if got := k.notified.Take(); len(got) != 1 {
			t.Errorf("the loss was notified of %v", got)
		}
		state(Connected)
		k.expect(healthscope.Unknown, healthscope.ReasonClusterUnreachable, healthscope.Ready, false)
		k.read()
		k.expect(healthscope.NotPresent, healthscope.ReasonNotFound, "", false)

		state(Unreachable)
		k.expect(healthscope.Unknown, healthscope.ReasonClusterUnreachable, "", false)
		state(Connecting)
		k.expect(healthscope.Unknown, healthscope.ReasonNotSynced, "", true)
		k.Detach("local")
		k.expect(healthscope.Unknown, healthscope.ReasonUnknownCluster, "", false)
		if len(k.kinds) != 0 {
			t.Error("a cluster that is removed is watched")
		}
	})
}

// TestObjectsKeepTheirLastStateAfterALongOutage: the watch of a kind fails for as long as its cluster is away. When the cluster is back, its
// objects keep their last state until they have been read again.
func TestObjectsKeepTheirLastStateAfterALongOutage(t *testing.T) {
	t.Parallel()
	withKindFixture(t, func(k *kindFixture) {
		k.read(readyWeb())
		k.report(20*time.Second, observe.Event{Kind: observe.Ended})
		k.setState(ClusterState{Name: "local", Reachability: Unreachable, Since: time.Now()})
		for range 20 {
			k.report(5*time.Second, observe.Event{Kind: observe.Failed, Message: "connection refused"})
		}
		k.setState(ClusterState{Name: "local", Reachability: Connected, Since: time.Now()})
		k.expect(healthscope.Unknown, healthscope.ReasonClusterUnreachable, healthscope.Ready, false)
	})
}

// TestRelistKeepsPreviousResults: while objects are read again with other rules, they keep their results, and those of a lost
// cluster stay lost.
func TestRelistKeepsPreviousResults(t *testing.T) {
	t.Parallel()
	withKindFixture(t, func(k *kindFixture) {
		k.read(readyWeb())
		k.Refresh()
		k.expect(healthscope.Ready, "", "", false)
		k.setState(ClusterState{Name: "local", Reachability: Unreachable, Since: time.Now()})
		k.Refresh()
		k.expect(healthscope.Unknown, healthscope.ReasonClusterUnreachable, healthscope.Ready, false)
		k.setState(ClusterState{Name: "local", Reachability: Connected, Since: time.Now()})
		k.expect(healthscope.Unknown, healthscope.ReasonClusterUnreachable, healthscope.Ready, false)
		k.read(readyWeb())
		k.expect(healthscope.Ready, "", "", false)
	})
}

// TestStaleResultsExpire has a cluster that comes back but whose kinds cannot be read. It must be notified that the former
// results are no longer shown.
func TestStaleResultsExpire(t *testing.T) {
	t.Parallel()
	withKindFixture(t, func(k *kindFixture) {
		k.read(readyWeb())
		k.setState(ClusterState{Name: "local", Reachability: Unreachable, Since: time.Now()})
		k.setState(ClusterState{Name: "local", Reachability: Connected, Since: time.Now()})
		synctest.Wait()
		k.notified.Take()
		<-time.After(InitialSyncTimeout + time.Second)
		k.expect(healthscope.Unknown, healthscope.ReasonNotSynced, "", false)
		if got := k.notified.Take(); len(got) != 1 {
			t.Errorf("notified of %v", got)
		}
	})
}

// TestMalformedObjectIsUnknown: an object that cannot be decoded as its kind still exists. It is malformed, not missing.
func TestMalformedObjectIsUnknown(t *testing.T) {
	t.Parallel()
	withKindFixture(t, func(k *kindFixture) {
		k.read(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": shopWeb.Namespace, "name": shopWeb.Name, "labels": map[string]any{"app": shopWeb.Name}},
			"spec": "none", "status": []any{"three"},
		}})
		k.expect(healthscope.Unknown, healthscope.ReasonInvalidObject, "", false)
	})
}

// TestObjectChangesHaveOldAndNewLabels: if the labels of an object change, there is a change with the former labels and one with
// the new labels.
func TestObjectChangesHaveOldAndNewLabels(t *testing.T) {
	t.Parallel()
	withKindFixture(t, func(k *kindFixture) {
		k.read(readyWeb())
		k.notified.Take()
		set := func(app string) *Lookup {
			return &Lookup{Result: healthscope.Result{State: healthscope.Ready}, Labels: NewLabelSet(map[string]string{"app": app})}
		}
		for _, step := range []struct {
			was, is *Lookup
			want    []string
		}{
			{nil, set("web"), []string{"web"}},
			{set("web"), set("web"), []string{"web"}},
			{set("web"), set("shop"), []string{"web", "shop"}},
			{set("shop"), nil, []string{"shop"}},
		} {
			k.w.notify(shopWeb, step.was, step.is)
			var got []string
			for _, c := range k.notified.Take() {
				if c, ok := c.(ObjectChange); ok && c.Name == shopWeb {
					got = append(got, c.Labels.Get("app"))
				}
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("labels of the changes (-want +got):\n%s", diff)
			}
		}
	})
}

// reader is a rule that returns the content of an object that it receives.
type reader struct{}

func (reader) Covers(string, string) bool { return true }

func (reader) Evaluate(object map[string]any) (healthscope.Result, string, bool) {
	return healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonHealthCheckFailed, Message: fmt.Sprint(object)}, "reader", true
}

func TestRulesGetRedactedObjects(t *testing.T) {
	t.Parallel()
	w := &kindInformer{kindOptions: kindOptions{userRules: reader{}}}
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": "web"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "env": []any{map[string]any{"name": "PASSWORD", "value": "open-sesame"}}}}},
	}}
	if text := w.toLookup(pod).Result.Message; strings.Contains(text, "open-sesame") || !strings.Contains(text, "PASSWORD") {
		t.Errorf("the rule saw %s", text)
	}
}

// TestOutageOfTheHubsOwnClusterIsNoProblemOfAKind: a kind of the hub's own cluster is settling in an outage of its API server, however
// long, and for a while after it. Otherwise all scopes would be Unknown for a moment once they can be written again.
func TestOutageOfTheHubsOwnClusterIsNoProblemOfAKind(t *testing.T) {
	t.Parallel()
	withKindFixture(t, func(k *kindFixture) {
		state := ClusterState{Name: "local", Local: true, Reachability: Connected}
		k.w.local = true
		k.setState(state)
		k.read(readyWeb())
		for _, answers := range []bool{true, false} {
			away := state
			away.outage.since = time.Now()
			k.setState(away)
			k.report(3*kindRules.Grace, observe.Event{Kind: observe.Failed})
			k.expect(healthscope.Unknown, healthscope.ReasonNotSynced, "", true)
			k.setState(state)
			k.expect(healthscope.Unknown, healthscope.ReasonNotSynced, "", true)
			if answers {
				k.read(readyWeb())
				k.expect(healthscope.Ready, "", "", false)
			}
		}
		<-time.After(kindRules.Grace)
		k.expect(healthscope.Unknown, healthscope.ReasonNotSynced, "", false)
		k.read(readyWeb())
		k.report(2*kindRules.Grace, observe.Event{Kind: observe.Failed})
		k.expect(healthscope.Unknown, healthscope.ReasonNotSynced, "", false) // The cluster answers, and the kind does not.
	})
}
