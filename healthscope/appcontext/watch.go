package appcontext

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Update is what a watch tells.
type Update struct {
	// Snapshot is what is below the watched handle at one revision, all of it. It has no keys when nothing is there. It is
	// nil only when etcd could not be read yet.
	Snapshot *Snapshot
	// Changed are the handles whose values were written or deleted since the last update, sorted; nil when Anew.
	Changed []Handle
	// Anew says that everything was read, at the beginning or after a gap: anything may have changed.
	Anew bool
	// Err says why etcd cannot be followed at the moment. The snapshot is then the last one known. The watch goes on by
	// itself, and begins with an update that is Anew.
	Err error
}

// Watch tells what is below the handle of a context, or of something in it: first as it is, then after each change, each
// time at one revision. Changes that come faster than they are received come as one. After a lost connection, or when
// etcd has forgotten what was in between, the watch reads everything anew. The channel is closed when ctx is done or the
// store is closed.
func (s *Store) Watch(ctx context.Context, h Handle) (<-chan Update, error) {
	id, _, ok := h.split()
	if !ok {
		return nil, checkHandle("", h)
	}
	w := &watch{store: s, id: id, prefix: string(h), changed: make(chan struct{}, 1), news: map[Handle]struct{}{}}
	updates := make(chan Update)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		f := follower{
			store: s, from: w.prefix, end: clientv3.GetPrefixRangeEnd(w.prefix),
			load: w.load, apply: w.apply, proven: func(int64, time.Time) {}, lost: w.lost,
		}
		f.run(ctx)
	}()
	go func() {
		defer close(updates)
		w.deliver(ctx, updates)
	}()
	return updates, nil
}

// watch holds what a watch has still to tell.
type watch struct {
	store      *Store
	id, prefix string
	// changed holds a token when there is something to tell.
	changed chan struct{}

	mu      sync.Mutex
	pending Update
	// news are the handles of pending.Changed: each once, however long nobody receives.
	news map[Handle]struct{}
}

func (w *watch) load(ctx context.Context) (int64, error) {
	values, revision, err := w.store.read(ctx, w.prefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	snapshot := snapshotOf(w.id, revision, values)
	w.tell(func(u *Update) {
		*u = Update{Snapshot: snapshot, Anew: true}
		clear(w.news)
	})
	return revision, nil
}

func (w *watch) apply(events []*clientv3.Event, revision int64) {
	w.tell(func(u *Update) {
		for _, event := range events {
			_, parts, ok := splitKey(string(event.Kv.Key))
			if !ok {
				continue
			}
			u.Snapshot = u.Snapshot.apply(parts, valueOf(event), event.Kv.ModRevision)
			if !u.Anew {
				w.news[Handle(event.Kv.Key)] = struct{}{}
			}
		}
		u.Snapshot = u.Snapshot.at(revision)
	})
}

// valueOf returns the value that an event has stored, or nil.
func valueOf(event *clientv3.Event) []byte {
	if event.Type == mvccpb.DELETE {
		return nil
	}
	if event.Kv.Value == nil {
		return []byte{}
	}
	return event.Kv.Value
}

func (w *watch) lost(err error) {
	w.tell(func(u *Update) { u.Err = err })
}

func (w *watch) tell(change func(*Update)) {
	w.mu.Lock()
	change(&w.pending)
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// take returns what is to be told, which is then told.
func (w *watch) take() Update {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.pending
	u.Changed = slices.Sorted(maps.Keys(w.news))
	clear(w.news)
	w.pending = Update{Snapshot: u.Snapshot}
	return u
}

func (w *watch) deliver(ctx context.Context, updates chan<- Update) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		// What comes in until this update is received makes up the next one.
		select {
		case <-ctx.Done():
			return
		case updates <- w.take():
		}
	}
}
