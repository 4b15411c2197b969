package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// client-go gives an empty watch, and no error, when a connection is closed before there is an answer, as a load balancer
// without an API server behind it does. A hub that took that for an answer would never see that the cluster is away.
func TestAWatchWithoutAnAnswerIsNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream  func() watch.Interface
		answers bool
	}{
		"empty":     {watch.NewEmptyWatch, false},
		"goes on":   {func() watch.Interface { return watch.NewFake() }, true},
		"an object": {func() watch.Interface { return watch.NewProxyWatcher(oneEvent()) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPulse(false, 10*time.Second, clock.RealClock{}, func() {})
				reader := &toolscache.ListWatch{WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return c.stream(), nil }}
				w := newWatched(reader, watched{pulse: p, resource: bundlesResource, state: func(l *liveness) *readState { return &l.bundles }})
				stream, err := w.WatchWithContext(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer stream.Stop()
				go func() {
					for range stream.ResultChan() {
					}
				}()
				<-time.After(settlePause)
				synctest.Wait()
				p.ask(func(l *liveness, _ time.Time) {
					if answered := !l.heard.IsZero(); answered != c.answers || l.bundles.current && !c.answers {
						t.Errorf("it counts as an answer: %t, want %t; current: %t", answered, c.answers, l.bundles.current)
					}
				})
			})
		})
	}
}

// oneEvent gives one event and ends.
func oneEvent() chan watch.Event {
	events := make(chan watch.Event, 1)
	events <- watch.Event{Type: watch.Bookmark}
	close(events)
	return events
}
