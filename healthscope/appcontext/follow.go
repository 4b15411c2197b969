package appcontext

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// firstDelay and longestDelay bound the time before a watch that broke is begun anew.
	firstDelay   = 100 * time.Millisecond
	longestDelay = 5 * time.Second
	// silence is for how many intervals there may be no proof that a watch is current before it is begun anew.
	silence = 5
)

// follower keeps something current with a range of keys. Its functions are called one at a time.
type follower struct {
	store *Store
	// from and end are the range: end is not in it.
	from, end string
	// load reads everything, at one revision, which it returns.
	load func(ctx context.Context) (revision int64, err error)
	// apply is told of changes, which are complete up to a revision.
	apply func(events []*clientv3.Event, revision int64)
	// proven is told that nothing but what apply was told of had changed up to a revision when etcd was asked.
	proven func(revision int64, asked time.Time)
	// lost is told why the watch broke. It will be begun anew, with load.
	lost func(error)
	// suspect says that the last watch went silent, and etcd has not been heard of since.
	suspect bool
}

// run follows until ctx is done or the store is closed.
func (f *follower) run(ctx context.Context) {
	delay := firstDelay
	for ctx.Err() == nil && !f.store.closed.Load() {
		began := time.Now()
		err := f.session(ctx)
		if ctx.Err() != nil || f.store.closed.Load() {
			return
		}
		f.lost(err)
		if time.Since(began) > longestDelay {
			delay = firstDelay
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		delay = min(2*delay, longestDelay)
	}
}

// session reads everything and follows until the watch breaks, and returns why.
func (f *follower) session(ctx context.Context) error {
	before := f.store.client.Load()
	revision, err := f.load(ctx)
	if err != nil {
		if f.suspect && errors.Is(err, ErrUnavailable) {
			f.store.drop(before)
		}
		return err
	}
	f.suspect = false
	limited, done := context.WithTimeout(ctx, f.store.options.Timeout)
	client, err := f.store.connect(limited)
	done()
	if err != nil {
		return translate(ctx, err)
	}
	// A watcher of our own has a stream of its own: questions and answers on it are ours. Without a leader etcd's answers
	// could be old.
	watcher := clientv3.NewWatcher(client)
	watching, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	p := &prover{store: f.store, watcher: watcher, key: f.from, known: revision, quiet: make(chan time.Time, 1), heard: time.Now()}
	var group sync.WaitGroup
	group.Go(func() { p.run(watching, cancel) })
	defer func() {
		cancel(nil)
		_ = watcher.Close() // Also ends a stream that a late question may have opened.
		group.Wait()
	}()
	if err := f.listen(ctx, watcher.Watch(watching, f.from, clientv3.WithRange(f.end), clientv3.WithRev(revision+1)), p); err != nil {
		return err
	}
	err = context.Cause(watching)
	f.suspect = errors.Is(err, errSilent)
	return cmp.Or(err, error(ErrUnavailable))
}

// listen tells what a watch says, until it breaks, and what its prover finds out.
func (f *follower) listen(ctx context.Context, watch clientv3.WatchChan, p *prover) error {
	revision := p.known
	for {
		select {
		case asked := <-p.quiet:
			f.proven(revision, asked)
		case r, ok := <-watch:
			if !ok {
				return nil
			}
			if err := r.Err(); err != nil {
				return translate(ctx, err)
			}
			switch {
			case len(r.Events) > 0:
				// Not the header's: that may be ahead of the events while the watch catches up.
				revision = r.Events[len(r.Events)-1].Kv.ModRevision
				f.apply(r.Events, revision)
			case r.IsProgressNotify():
				revision = max(revision, r.Header.Revision)
			}
			if asked, ok := p.answered(revision); ok {
				f.proven(revision, asked)
			}
		}
	}
}

// prover finds out, again and again, whether a watch is current: it asks etcd, all of it and not only the member that the
// watch is at, for its revision. When that is not known yet it asks the watch to say when it has come so far. When it is,
// nothing has been written since, and what is known is current; the watch would give no answer, for etcd does not speak of
// progress to a watch that begins after the last revision.
type prover struct {
	store   *Store
	watcher clientv3.Watcher
	key     string
	// quiet is sent when etcd was asked and nothing was new.
	quiet chan time.Time

	mu sync.Mutex
	// known is the revision up to which everything is known.
	known int64
	// asked is when the question was put that is not answered yet, zero when there is none, and revision what to wait for.
	asked    time.Time
	revision int64
	// heard is when a question was last answered.
	heard time.Time
}

// run asks until ctx is done, or there was no proof for too long: then it cancels the watch.
func (p *prover) run(ctx context.Context, cancel context.CancelCauseFunc) {
	interval := p.store.options.ProofInterval
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if p.silence() > silence*interval {
			cancel(errSilent)
			return
		}
		asking, done := context.WithTimeout(ctx, silence*interval)
		p.ask(asking)
		done()
	}
}

// ask puts a question, or repeats the one that has no answer: a watch that is still catching up gives none. What cannot
// be asked stays without proof.
func (p *prover) ask(ctx context.Context) {
	p.mu.Lock()
	waiting, known := !p.asked.IsZero(), p.known
	p.mu.Unlock()
	if !waiting {
		asked := time.Now()
		_, revision, err := p.store.read(ctx, p.key, clientv3.WithCountOnly())
		if err != nil {
			return
		}
		if revision == known {
			p.prove(asked)
			return
		}
		p.mu.Lock()
		p.asked, p.revision = asked, revision
		p.mu.Unlock()
	}
	_ = p.watcher.RequestProgress(ctx)
}

// prove notes that nothing is new.
func (p *prover) prove(asked time.Time) {
	p.mu.Lock()
	p.heard = time.Now()
	p.mu.Unlock()
	select {
	case p.quiet <- asked:
	default: // The one before has not been looked at yet.
	}
}

// answered says whether a watch that has come to a revision answers the question, and when that was put.
func (p *prover) answered(revision int64) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = revision
	asked := p.asked
	if asked.IsZero() || revision < p.revision {
		return time.Time{}, false
	}
	p.asked, p.heard = time.Time{}, time.Now()
	return asked, true
}

// silence returns how long there has been no proof.
func (p *prover) silence() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.heard)
}
