package rsync

import (
	"sync"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// journal records what steps come to, in the order in which they do. What other steps come to while etcd answers is written
// together. Each step waits until its own is: one that went on would act in a cluster after the lock was lost.
type journal struct {
	entries chan entry
	running sync.WaitGroup
	// err is why not all was written. It may be read once close has returned.
	err error
}

// entry is what a step has come to.
type entry struct {
	writes []appcontext.Write
	// written gets nil when it is in etcd, or why it is not.
	written chan<- error
}

// maxEntries is how much of what steps came to may wait for the next transaction.
const maxEntries = 256

// openJournal returns a journal that writes as write does, until that fails: then failed is called, and nothing more is written.
func openJournal(write func([]appcontext.Write) error, failed func()) *journal {
	j := &journal{entries: make(chan entry, maxEntries)}
	j.running.Go(func() {
		for first := range j.entries {
			batch := j.batch(first)
			if j.err == nil {
				if j.err = write(merge(batch)); j.err != nil {
					failed()
				}
			}
			for _, e := range batch {
				e.written <- j.err
			}
		}
	})
	return j
}

// batch returns an entry and those that wait behind it, as far as they go into one transaction.
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

// merge returns the writes of entries. The last one to a key counts.
func merge(batch []entry) []appcontext.Write {
	type key struct {
		handle appcontext.Handle
		own    bool
	}
	var all []appcontext.Write
	at := map[key]int{}
	for _, e := range batch {
		for _, w := range e.writes {
			k := key{w.Handle, w.Own}
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

// record records something, and returns when it is written.
func (j *journal) record(writes []appcontext.Write) error {
	written := make(chan error, 1)
	j.entries <- entry{writes, written}
	return <-written
}

// close writes what is left, and returns why not all was written. Nothing may be recorded after it.
func (j *journal) close() error {
	close(j.entries)
	j.running.Wait()
	return j.err
}
