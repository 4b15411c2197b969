package scope

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestMailboxDeliversAllInOrder(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := newMailbox[int]()
	// Nobody takes anything out yet, and nobody is kept waiting.
	for i := range 100 {
		m.put(i)
	}
	var got []int
	m.put(100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.deliver(ctx, func(i int) {
			got = append(got, i)
			switch i {
			case 100:
				m.put(101) // While the others are being delivered.
			case 101:
				cancel()
			}
		})
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the mailbox does not end with its context")
	}
	want := make([]int, 102)
	for i := range want {
		want[i] = i
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestMailboxTakesFromMany(t *testing.T) {
	t.Parallel()
	const senders, each = 8, 200
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m := newMailbox[int]()
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for range each {
				m.put(1)
			}
		})
	}
	sum := 0
	m.deliver(ctx, func(n int) {
		sum += n
		if sum == senders*each {
			cancel()
		}
	})
	wg.Wait()
	if sum != senders*each {
		t.Errorf("want %d items, got %d", senders*each, sum)
	}
}
