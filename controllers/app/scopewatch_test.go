package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// following is a watch of scopes that a test begins and ends.
type following struct {
	scopeWatch

	t      *testing.T
	stream *apiwatch.FakeWatcher
	err    error
}

// begin begins a watch, or fails to, and reads it until it ends.
func (f *following) begin(fromStart bool) {
	f.t.Helper()
	f.stream = apiwatch.NewFake()
	lister := scopeLister{&toolscache.ListWatch{WatchFuncWithContext: func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) { return f.stream, f.err }}, &f.scopeWatch}
	w, err := lister.WatchWithContext(f.t.Context(), metav1.ListOptions{SendInitialEvents: &fromStart})
	if !errors.Is(err, f.err) {
		f.t.Fatal(err)
	}
	if err == nil {
		go func() {
			for range w.ResultChan() {
			}
		}()
	}
	synctest.Wait()
}

// expect asserts, after some time, whether scopes are current, and since when they are not.
func (f *following) expect(after time.Duration, what string, since time.Time, problem string) {
	f.t.Helper()
	<-time.After(after)
	synctest.Wait()
	if got, why := f.outage(time.Now()); !got.Equal(since) || why != problem {
		f.t.Errorf("%s: lost since %s, %q; want %s, %q", what, got, why, since, problem)
	}
}

// A watch that ends and is resumed at once is none of anybody's business; one that is not makes scopes old, until one has caught up.
func TestScopesAreOldWithoutAWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &following{t: t}
		none := time.Time{}
		f.expect(time.Hour, "before the first watch, when nobody is answered either", none, "")
		f.begin(false)
		f.expect(time.Hour, "watching", none, "")
		f.stream.Stop()
		f.expect(watchPatience-time.Second, "a watch has ended a moment ago", none, "")
		f.begin(false)
		f.expect(0, "it is resumed", none, "")
		f.expect(time.Hour, "it goes on", none, "")

		lost := time.Now()
		f.stream.Stop()
		f.expect(watchPatience, "there is none", lost, "")
		f.err = errors.New("no route")
		f.begin(false)
		f.expect(time.Hour, "it cannot be resumed", lost, "no route")
		f.err = nil
		f.begin(false)
		f.expect(0, "it is resumed, and what was missed is still to come", lost, "")
		f.expect(watchSettles, "it has come", none, "")

		lost = time.Now()
		f.stream.Stop()
		<-time.After(time.Minute)
		f.begin(true)
		f.expect(time.Minute, "everything is read anew", lost, "")
		f.stream.Action(apiwatch.Bookmark, &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
		f.expect(watchSettles, "everything has been read", none, "")
		f.stream.Stop()
		synctest.Wait()
	})
}

// client-go gives an empty watch, and no error, when a connection is closed before there is an answer.
func TestScopesAreOldWhileEveryWatchEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &following{t: t}
		f.begin(false)
		f.expect(time.Hour, "watching", time.Time{}, "")
		lost := time.Now()
		f.stream.Stop()
		for range 5 {
			<-time.After(2 * watchPatience)
			f.begin(false)
			f.stream.Stop()
			f.expect(0, "a watch ends at once", lost, "the connection ends before there is an answer")
		}
		f.begin(false)
		f.expect(watchSettles, "one goes on", time.Time{}, "")
		f.stream.Stop()
		synctest.Wait()
	})
}
