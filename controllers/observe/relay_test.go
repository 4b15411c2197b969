package observe

import (
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/watch"
)

// TestFilterStopsWithoutReceiver relies on synctest, which fails when a goroutine leaks.
func TestFilterStopsWithoutReceiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stream := watch.NewFakeWithChanSize(3, false)
		s := Filter(stream, func(e watch.Event) bool { return e.Type != watch.Deleted })
		stream.Add(nil)
		stream.Delete(nil)
		stream.Modify(nil)
		if event := <-s.ResultChan(); event.Type != watch.Added {
			t.Errorf("%v came first", event)
		}
		synctest.Wait() // It holds an event without a receiver.
		s.Stop()
		for event := range s.ResultChan() {
			if event.Type == watch.Deleted {
				t.Errorf("%v came through", event)
			}
		}
	})
}
