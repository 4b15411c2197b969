package rsync

import (
	"sync"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// journal records the results of steps, in the order in which they arrive. Results that arrive during a write are batched into
// the next one. Each step waits until its result is written: otherwise it would act in a cluster after the lock was lost.
type journal struct {
	// write stores writes. Calls do not overlap, and after a failure there is none.
	write func([]appcontext.Write) error

	mu   sync.Mutex
	next *batch

	// writing is held by the step that writes a batch. It guards err, the error of the write that failed.
	writing sync.Mutex
	err     error
}

// batch holds the writes of steps in their order. journal.mu guards writes, and journal.writing guards written.
type batch struct {
	writes  []appcontext.Write
	written bool
}

func newJournal(write func([]appcontext.Write) error) *journal {
	return &journal{write: write, next: &batch{}}
}

// record returns when writes are in etcd or have failed. The first step of a batch that gets its turn writes all of it.
func (j *journal) record(writes ...appcontext.Write) error {
	j.mu.Lock()
	mine := j.next
	mine.writes = append(mine.writes, writes...)
	j.mu.Unlock()
	j.writing.Lock()
	defer j.writing.Unlock()
	if mine.written {
		return j.err
	}
	j.mu.Lock()
	j.next = &batch{}
	j.mu.Unlock()
	mine.written = true
	if j.err == nil {
		j.err = j.write(lastOfEachKey(mine.writes))
	}
	return j.err
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
