package observe

import (
	"testing"
	"testing/synctest"
	"time"

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

// TestRelayEndsBeforeStopReturns checks what a Tracked relies on: that the end of a watch is reported before the next attempt begins.
func TestRelayEndsBeforeStopReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := false
		r := newRelay(watch.NewFake(), func(r *relay) {
			<-r.StopChan()
			<-time.After(time.Second)
			ended = true
		})
		for range 2 { // A reflector stops a watch twice.
			r.Stop()
			if !ended {
				t.Error("it has not ended")
			}
		}
	})
}
