package rsync

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// TestJournalKeepsTheOrderOfWrites records results of many steps while a write is in progress. They are written together in the
// order in which they arrived, and of a key that is written twice, the last value counts.
func TestJournalKeepsTheOrderOfWrites(t *testing.T) {
	t.Parallel()
	begun, resume := make(chan struct{}), make(chan struct{})
	var written [][]appcontext.Write
	j := newJournal(func(writes []appcontext.Write) error {
		written = append(written, writes)
		if len(written) == 1 {
			close(begun)
			<-resume
		}
		return nil
	})
	var steps sync.WaitGroup
	record := func(writes ...appcontext.Write) {
		steps.Go(func() {
			if err := j.record(writes...); err != nil {
				t.Error(err)
			}
		})
	}
	first := appcontext.Write{Handle: "first", Value: 0}
	record(first)
	<-begun
	waiting := func() int {
		j.mu.Lock()
		defer j.mu.Unlock()
		return len(j.next.writes)
	}
	var want []appcontext.Write
	for i := range 300 {
		own := appcontext.Write{Handle: appcontext.Handle(fmt.Sprint("own", i)), Value: i}
		record(own, appcontext.Write{Handle: "shared", Value: i}, appcontext.Write{Handle: "shared", Sidecar: true, Value: -i})
		for waiting() < 3*(i+1) {
			runtime.Gosched()
		}
		want = append(want, own)
		if i == 0 {
			want = append(want, appcontext.Write{Handle: "shared", Value: 299}, appcontext.Write{Handle: "shared", Sidecar: true, Value: -299})
		}
	}
	close(resume)
	steps.Wait()
	if diff := cmp.Diff([][]appcontext.Write{{first}, want}, written); diff != "" {
		t.Errorf("-want +written:\n%s", diff)
	}
}

// TestJournalWritesNothingAfterAFailure checks that each later step learns of it.
func TestJournalWritesNothingAfterAFailure(t *testing.T) {
	t.Parallel()
	calls, failure := 0, errors.New("the lock is lost")
	j := newJournal(func([]appcontext.Write) error {
		calls++
		return failure
	})
	for range 3 {
		if err := j.record(appcontext.Write{Handle: "a"}); !errors.Is(err, failure) {
			t.Errorf("got %v", err)
		}
	}
	if calls != 1 {
		t.Errorf("%d writes after a failure", calls-1)
	}
}
