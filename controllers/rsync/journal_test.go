package rsync

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// blockedJournal returns a journal each of whose writes waits for its result, what it has written, and a function that records
// the result of a step. The function returns when the step waits, and calls done at its end.
func blockedJournal(results <-chan error) (written *[][]appcontext.Write, record func(done func(error), writes ...appcontext.Write), steps *sync.WaitGroup) {
	written, steps = &[][]appcontext.Write{}, &sync.WaitGroup{}
	j := newJournal(func(writes []appcontext.Write) error {
		*written = append(*written, writes)
		return <-results
	})
	return written, func(done func(error), writes ...appcontext.Write) {
		steps.Go(func() { done(j.record(writes...)) })
		synctest.Wait()
	}, steps
}

// TestJournalKeepsTheOrderOfWrites records results of many steps while a write is in progress. They are written in as few
// transactions as possible, in the order in which they arrived, and of a key that is written twice, the last value counts.
func TestJournalKeepsTheOrderOfWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		results := make(chan error)
		written, record, steps := blockedJournal(results)
		succeeds := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		first := appcontext.Write{Handle: "first", Value: 0}
		record(succeeds, first)
		var want []appcontext.Write
		for i := range 300 {
			own := appcontext.Write{Handle: appcontext.Handle(fmt.Sprint("own", i)), Value: i}
			record(succeeds, own, appcontext.Write{Handle: "shared", Value: i}, appcontext.Write{Handle: "shared", Sidecar: true, Value: -i})
			want = append(want, own)
			if i == 0 {
				want = append(want, appcontext.Write{Handle: "shared", Value: 299}, appcontext.Write{Handle: "shared", Sidecar: true, Value: -299})
			}
		}
		close(results)
		steps.Wait()
		transactions := slices.AppendSeq([][]appcontext.Write{{first}}, slices.Chunk(want, appcontext.MaxWrites))
		if diff := cmp.Diff(transactions, *written); diff != "" {
			t.Errorf("-want +written:\n%s", diff)
		}
	})
}

// TestStepsWaitForTheirOwnWrite checks that each write ends the steps whose results it holds, and no others. After a failure, there
// is no further write, and all steps that wait learn of it.
func TestStepsWaitForTheirOwnWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failure, results := errors.New("the lock is lost"), make(chan error)
		written, record, steps := blockedJournal(results)
		var succeeded, failed atomic.Int32
		begin := func(count int) {
			for range count {
				record(func(err error) {
					switch {
					case err == nil:
						succeeded.Add(1)
					case errors.Is(err, failure):
						failed.Add(1)
					}
				}, appcontext.Write{Handle: "a"})
			}
		}
		expect := func(writes int, wantSucceeded, wantFailed int32) {
			t.Helper()
			synctest.Wait()
			if len(*written) != writes || succeeded.Load() != wantSucceeded || failed.Load() != wantFailed {
				t.Errorf("%d writes have begun, %d steps succeeded and %d failed; want %d, %d and %d", len(*written), succeeded.Load(), failed.Load(), writes, wantSucceeded, wantFailed)
			}
		}
		begin(1)
		begin(2)
		expect(1, 0, 0)
		results <- nil
		expect(2, 1, 0)
		begin(4)
		expect(2, 1, 0)
		results <- nil
		expect(3, 3, 0)
		begin(8)
		results <- failure
		expect(3, 3, 12)
		begin(1)
		steps.Wait()
		expect(3, 3, 13)
	})
}
