package rsync

import (
	"slices"
	"sync"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// journal records the results of steps, in the order in which they arrive. Results that arrive during a write are batched into
// the next one. Each step waits until its result is written: otherwise it would act in a cluster after the lock was lost.
type journal struct {
	// write stores the writes of one transaction, so that what is stored is not written again if etcd fails during a batch. Calls do
	// not overlap, and after a failure there is none.
	write func([]appcontext.Write) error
	// turn holds a token while a step writes a batch. The step may use err, the error of the first write that failed.
	turn chan struct{}
	err  error

	mu   sync.Mutex
	next *batch
}

// batch holds writes in their order, until it is written. err is set before written is closed.
type batch struct {
	writes  []appcontext.Write
	written chan struct{}
	err     error
}

func newBatch() *batch { return &batch{written: make(chan struct{})} }

func newJournal(write func([]appcontext.Write) error) *journal {
	return &journal{write: write, turn: make(chan struct{}, 1), next: newBatch()}
}

// record returns when writes are in etcd or have failed. The first step of a batch that gets its turn writes all of it.
func (j *journal) record(writes ...appcontext.Write) error {
	j.mu.Lock()
	mine := j.next
	mine.writes = append(mine.writes, writes...)
	j.mu.Unlock()
	select {
	case <-mine.written:
	case j.turn <- struct{}{}:
		if j.close(mine) {
			for transaction := range slices.Chunk(lastOfEachKey(mine.writes), appcontext.MaxWrites) {
				if j.err == nil {
					j.err = j.write(transaction)
				}
			}
			mine.err = j.err
			close(mine.written)
		}
		<-j.turn
	}
	return mine.err
}

// close begins a new batch. It returns false if another step has done so, and has written the batch b.
func (j *journal) close(b *batch) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.next != b {
		return false
	}
	j.next = newBatch()
	return true
}

// lastOfEachKey returns writes in their order. Of several writes to a key, the last one counts: etcd rejects a transaction that
// writes a key twice.
func lastOfEachKey(writes []appcontext.Write) []appcontext.Write {
	type key struct {
		handle  appcontext.Handle
		sidecar bool
	}
	var all []appcontext.Write
	at := map[key]int{}
	for _, w := range writes {
		k := key{w.Handle, w.Sidecar}
		i, again := at[k]
		if again {
			all[i] = w
			continue
		}
		at[k] = len(all)
		all = append(all, w)
	}
	return all
}
