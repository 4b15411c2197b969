package rsync

import (
	"sync"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// journal records the results of steps, in the order in which they arrive. Results that arrive during a write are batched into
// the next one. Each step waits until its result is written: otherwise it would act in a cluster after the lock was lost.
type journal struct {
	entries chan entry
	writer  sync.WaitGroup
	// err is the error of the first write that failed. Only the writer may read it before close has returned.
	err error
}

// entry is the result of a step.
type entry struct {
	writes []appcontext.Write
	// written receives nil when the result is in etcd, or the error.
	written chan<- error
}

// maxEntries is how many results may wait for the next transaction.
const maxEntries = 256

// openJournal returns a journal that writes with write. When write fails, the journal calls onError and writes nothing more.
func openJournal(write func([]appcontext.Write) error, onError func()) *journal {
	j := &journal{entries: make(chan entry, maxEntries)}
	j.writer.Go(func() {
		for first := range j.entries {
			batch := j.batch(first)
			if j.err == nil {
				if j.err = write(merge(batch)); j.err != nil {
					onError()
				}
			}
			for _, e := range batch {
				e.written <- j.err
			}
		}
	})
	return j
}

// batch returns an entry and those that wait behind it, about as many as one transaction takes.
func (j *journal) batch(first entry) []entry {
	batch, size := []entry{first}, len(first.writes)
	for size < appcontext.MaxWrites {
		select {
		case e, isOpen := <-j.entries:
			if !isOpen {
				return batch
			}
			batch, size = append(batch, e), size+len(e.writes)
		default:
			return batch
		}
	}
	return batch
}

// merge returns the writes of entries. Of several writes to a key, the last one counts.
func merge(batch []entry) []appcontext.Write {
	type key struct {
		handle appcontext.Handle
		own    bool
	}
	var all []appcontext.Write
	at := map[key]int{}
	for _, e := range batch {
		for _, w := range e.writes {
			k := key{w.Handle, w.Sidecar}
			if i, twice := at[k]; twice {
				all[i] = w
				continue
			}
			at[k] = len(all)
			all = append(all, w)
		}
	}
	return all
}

// record queues writes, and returns when they are in etcd or have failed.
func (j *journal) record(writes []appcontext.Write) error {
	written := make(chan error, 1)
	j.entries <- entry{writes, written}
	return <-written
}

// close writes the remaining entries, and returns the error of the first write that failed. Callers must not call record after it.
func (j *journal) close() error {
	close(j.entries)
	j.writer.Wait()
	return j.err
}
