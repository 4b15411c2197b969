package members

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

var sink = types.NamespacedName{Namespace: "shop", Name: "1-sink"}

// start starts one cluster, and returns it with a client that has the token.
func start(t *testing.T) (*Server, client.WithWatch) {
	t.Helper()
	f, err := Start(t.Context(), Names("provider+edge", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	return f.Servers[0], clientOf(t, f, f.Token)
}

func clientOf(t *testing.T, f *Fleet, token string) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{coordinationv1.AddToScheme, k8spluginv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind), meta.RESTScopeNamespace)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	config := &rest.Config{Host: f.Servers[0].URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: f.Authority}}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bundle is a bundle with so many resources.
func bundle(t *testing.T, resources int32) Bundle {
	t.Helper()
	b := &k8spluginv1alpha1.ResourceBundleState{}
	b.Labels = map[string]string{"app": "sink"}
	b.Status.ResourceCount = resources
	sent, err := NewBundle(b)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

// next returns the type of the next event of a watch, and its object.
func next(ctx context.Context, t *testing.T, w watch.Interface) (watch.EventType, client.Object) {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch has ended")
		}
		if s, failed := e.Object.(*metav1.Status); failed {
			t.Fatalf("the watch fails: %s", s.Message)
		}
		o, ok := e.Object.(client.Object)
		if !ok {
			t.Fatalf("the watch shows a %T", e.Object)
		}
		return e.Type, o
	case <-ctx.Done():
		t.Fatal("the watch says nothing")
	}
	return "", nil
}

// listed returns so many bundles.
func listed(ctx context.Context, t *testing.T, c client.Client, n int, options ...client.ListOption) *k8spluginv1alpha1.ResourceBundleStateList {
	t.Helper()
	list := &k8spluginv1alpha1.ResourceBundleStateList{}
	if err := c.List(ctx, list, options...); err != nil || len(list.Items) != n {
		t.Fatalf("got %d bundles, error %v", len(list.Items), err)
	}
	return list
}

func TestListAndWatchGoTogether(t *testing.T) {
	s, c := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s.Put(sink, bundle(t, 3))
	s.Put(types.NamespacedName{Namespace: "elsewhere", Name: "2-db"}, bundle(t, 1))

	listed(ctx, t, c, 2)
	list := listed(ctx, t, c, 1, client.InNamespace("shop"))
	if b := list.Items[0]; b.Status.ResourceCount != 3 || b.Labels["app"] != "sink" || b.UID == "" || b.ResourceVersion == "" {
		t.Errorf("got %+v", b)
	}

	w, err := c.Watch(ctx, &k8spluginv1alpha1.ResourceBundleStateList{}, client.InNamespace("shop"), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	s.Put(types.NamespacedName{Namespace: "elsewhere", Name: "2-db"}, bundle(t, 2)) // Not for this watch.
	s.Put(sink, bundle(t, 4))
	kind, o := next(ctx, t, w)
	if b, ok := o.(*k8spluginv1alpha1.ResourceBundleState); !ok || kind != watch.Modified || b.Name != sink.Name || b.Status.ResourceCount != 4 {
		t.Errorf("got %s of %+v", kind, b)
	}
	s.Remove(sink)
	if kind, o = next(ctx, t, w); kind != watch.Deleted || o.GetName() != sink.Name {
		t.Errorf("got %s of %q", kind, o.GetName())
	}
}

func TestAWatchFromTheStartSaysWhenItIsThrough(t *testing.T) {
	s, c := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s.Put(sink, bundle(t, 3))
	w, err := c.Watch(ctx, &k8spluginv1alpha1.ResourceBundleStateList{}, &client.ListOptions{Raw: &metav1.ListOptions{
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if kind, o := next(ctx, t, w); kind != watch.Added || o.GetName() != sink.Name {
		t.Errorf("got %s of %q", kind, o.GetName())
	}
	if kind, o := next(ctx, t, w); kind != watch.Bookmark || o.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" || o.GetResourceVersion() == "" {
		t.Errorf("got %s of %+v", kind, o)
	}
}

func TestAWatchThatComesTooLateIsTold(t *testing.T) {
	s, c := start(t)
	s.Put(sink, bundle(t, 0))
	for i := range int32(3 * history) {
		s.Put(sink, bundle(t, i))
	}
	_, err := c.Watch(t.Context(), &k8spluginv1alpha1.ResourceBundleStateList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "2"}})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("got error %v", err)
	}
}

func TestLeasesAreRenewed(t *testing.T) {
	f, err := Start(t.Context(), Names("edge", 2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Stop() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	lease := types.NamespacedName{Namespace: "system", Name: "monitor"}
	beating, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Beat(beating, lease, 20*time.Millisecond)
	}()
	w, err := clientOf(t, f, f.Token).Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace("system"), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", "monitor")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var renewed []time.Time
	for range 3 {
		_, o := next(ctx, t, w)
		l, ok := o.(*coordinationv1.Lease)
		if !ok || l.Spec.RenewTime == nil {
			t.Fatalf("got %+v", o)
		}
		renewed = append(renewed, l.Spec.RenewTime.Time)
	}
	if !slices.IsSortedFunc(renewed, time.Time.Compare) || renewed[0].Equal(renewed[2]) {
		t.Errorf("renewed at %v", renewed)
	}
	stop()
	<-ended
}

func TestWhatIsNotServedIsRefused(t *testing.T) {
	f, err := Start(t.Context(), Names("edge", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Stop() })
	if err := clientOf(t, f, "guess").List(t.Context(), &k8spluginv1alpha1.ResourceBundleStateList{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("without the token: got error %v", err)
	}
	err = clientOf(t, f, f.Token).List(t.Context(), &k8spluginv1alpha1.ResourceBundleStateList{}, client.MatchingLabels{"a": "b"})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "labelSelector") {
		t.Errorf("with a label selector: got error %v", err)
	}
	if err := clientOf(t, f, f.Token).Delete(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}); !apierrors.IsNotFound(err) {
		t.Errorf("a deletion: got error %v", err)
	}
}
