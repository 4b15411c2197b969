package appcontext

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// activePrefix is the prefix of the keys that name the contexts for which rsync has work left.
const activePrefix = "/activecontext/"

// ActiveHandle returns the key that says that rsync has work left for a context.
func ActiveHandle(id string) Handle { return Handle(activePrefix + id + "/") }

// Write is a new value at a handle. A nil value removes the key.
type Write struct {
	Handle Handle
	Value  any
	// Sidecar is true for a key of our own beside the handle, which EMCO does not know.
	Sidecar bool
}

func (w Write) key() string {
	if w.Sidecar {
		return sidecarKey(w.Handle)
	}
	return string(w.Handle)
}

// Condition is what must hold for writes.
type Condition struct {
	// Lock, if set, must be held.
	Lock *Lock
	// Unchanged are contexts that were read before. At the Levels below each, the values must still be those that were read.
	Unchanged []*Snapshot
	Levels    []string
}

// MaxWrites is how many writes go into one transaction, unless all have to.
const MaxWrites = maxOperations

// WriteLevels writes to a context, and to others that the writes name. With an empty id, only the contexts that the writes
// name must exist. It fails with ErrNotFound when one of them does not exist, and with ErrConflict when the condition does
// not hold. With records, or with contexts that must not have changed, it writes everything in one transaction.
func (s *Store) WriteLevels(ctx context.Context, id string, writes []Write, c Condition, records ...Record) error {
	size := MaxWrites
	if len(c.Unchanged) > 0 || len(records) > 0 {
		size = max(len(writes), 1)
	}
	for chunk := range slices.Chunk(writes, size) {
		t := &transaction{}
		for _, context := range contextsOf(id, chunk) {
			t.require(string(ContextHandle(context)))
		}
		c.add(t)
		for _, r := range records {
			if err := s.addRecord(ctx, t, r); err != nil {
				return wrapRecordError(r, err)
			}
		}
		for _, w := range chunk {
			if w.Value == nil {
				t.remove(w.key())
			} else {
				t.put(w.key(), w.Value)
			}
		}
		if err := s.commit(ctx, t); err != nil {
			if id == "" {
				return wrap("cannot write to etcd", err)
			}
			return wrap(fmt.Sprintf("cannot write to context %q", id), err)
		}
	}
	return nil
}

// contextsOf returns the contexts that must exist for writes.
func contextsOf(id string, writes []Write) []string {
	var ids []string
	if id != "" {
		ids = append(ids, id)
	}
	for _, w := range writes {
		if other, _, ok := w.Handle.split(); ok && !slices.Contains(ids, other) {
			ids = append(ids, other)
		}
	}
	return ids
}

func (c Condition) add(t *transaction) {
	if c.Lock != nil {
		t.compare(c.Lock.mutex.IsOwner(), c.Lock.mutex.Key())
	}
	for _, read := range c.Unchanged {
		for _, level := range c.Levels {
			h := read.Handle().Level(level)
			t.compare(clientv3.Compare(clientv3.ModRevision(string(h)), "=", read.StoredRevision(h)), string(h))
		}
	}
}

// WatchActive calls active with the ids of contexts for which rsync has work left: first with all of them, and then with
// each that gets work, until the watch breaks or ctx ends. It returns the reason.
func (s *Store) WatchActive(ctx context.Context, active func(id string)) error {
	return wrap("cannot follow active contexts", s.watchPrefix(ctx, activePrefix, 0, func(key string, _ int64) {
		active(strings.TrimSuffix(strings.TrimPrefix(key, activePrefix), "/"))
	}))
}

// WatchLevels calls changed as soon as it watches, and then whenever a value at one of some levels below a context has changed,
// or anywhere in it when none is given, until the watch breaks or ctx ends. It returns the reason.
func (s *Store) WatchLevels(ctx context.Context, id string, levels []string, changed func()) error {
	what := fmt.Sprintf("cannot follow context %q", id)
	if len(levels) == 0 {
		return wrap(what, s.watch(ctx, string(ContextHandle(id)), func(clientv3.WatchResponse) { changed() }, clientv3.WithPrefix(), clientv3.WithCreatedNotify()))
	}
	keys := make([]string, 0, len(levels))
	for _, level := range levels {
		keys = append(keys, string(ContextHandle(id).Level(level)))
	}
	slices.Sort(keys)
	isOne := func(event *clientv3.Event) bool { return slices.Contains(keys, string(event.Kv.Key)) }
	return wrap(what, s.watch(ctx, keys[0], func(r clientv3.WatchResponse) {
		if r.Created || slices.ContainsFunc(r.Events, isOne) {
			changed()
		}
	}, clientv3.WithRange(keys[len(keys)-1]+"\x00"), clientv3.WithCreatedNotify()))
}

// watchPrefix calls onWrite for each key below a prefix that was written after a revision of etcd, and then whenever one is
// written, with the revision, until the watch breaks or ctx ends. It returns the reason.
func (s *Store) watchPrefix(ctx context.Context, prefix string, after int64, onWrite func(key string, revision int64)) error {
	all, revision, err := s.read(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithMinModRev(after+1))
	if err == nil && revision < after { // Etcd was restored from a backup: what is there may be anything.
		all, revision, err = s.read(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	}
	if err != nil {
		return err
	}
	for _, kv := range all {
		onWrite(string(kv.Key), kv.ModRevision)
	}
	return s.watch(ctx, prefix, func(r clientv3.WatchResponse) {
		for _, event := range r.Events {
			onWrite(string(event.Kv.Key), event.Kv.ModRevision)
		}
	}, clientv3.WithPrefix(), clientv3.WithRev(revision+1), clientv3.WithFilterDelete())
}

// watch calls handle with each response of a watch until it breaks or ctx ends. It returns the reason.
func (s *Store) watch(ctx context.Context, key string, handle func(clientv3.WatchResponse), options ...clientv3.OpOption) error {
	client, err := s.connect(ctx)
	if err != nil {
		return translate(ctx, err)
	}
	watcher := clientv3.NewWatcher(client)
	defer func() { _ = watcher.Close() }() // It has ended.
	for r := range watcher.Watch(clientv3.WithRequireLeader(ctx), key, options...) {
		if err := r.Err(); err != nil {
			return translate(ctx, err)
		}
		handle(r)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return ErrUnavailable
}

// ContextIDs returns the ids of all contexts.
func (s *Store) ContextIDs(ctx context.Context) ([]string, error) {
	_, ids, err := s.listContexts(ctx, 0)
	return ids, wrap(opFindAll, err)
}

// ListSidecars returns the values that are kept in keys of our own one level below a handle, by the names of their levels.
func (s *Store) ListSidecars(ctx context.Context, h Handle) (map[string]string, error) {
	prefix := sidecarKey(h)
	all, _, err := s.read(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, wrap(opValue, err)
	}
	values := map[string]string{}
	for _, kv := range all {
		name := strings.TrimSuffix(strings.TrimPrefix(string(kv.Key), prefix), "/")
		if name == "" || strings.Contains(name, "/") {
			continue
		}
		if values[name], err = decodeText(string(kv.Key), kv.Value); err != nil {
			return nil, wrap(opValue, err)
		}
	}
	return values, nil
}

// Sidecar returns the value that is kept in a key of our own beside a handle; empty when there is none.
func (s *Store) Sidecar(ctx context.Context, h Handle) (string, error) {
	values, _, err := s.read(ctx, sidecarKey(h))
	if err != nil || len(values) == 0 {
		return "", wrap(opValue, err)
	}
	text, err := decodeText(sidecarKey(h), values[0].Value)
	return text, wrap(opValue, err)
}

// Revisions returns the revisions of etcd at which the value at a handle, and the key of our own beside it, were last written; 0 for
// what is not there.
func (s *Store) Revisions(ctx context.Context, h Handle) (value, own int64, err error) {
	results, err := s.readEach(ctx, []clientv3.Op{clientv3.OpGet(string(h), clientv3.WithKeysOnly()), clientv3.OpGet(sidecarKey(h), clientv3.WithKeysOnly())})
	if err != nil {
		return 0, 0, wrap(opValue, err)
	}
	for i, into := range []*int64{&value, &own} {
		for _, kv := range results[i].Kvs {
			*into = kv.ModRevision
		}
	}
	return value, own, nil
}

// Stored returns the raw value at a handle, and whether it is there.
func (s *Snapshot) Stored(h Handle) ([]byte, bool) {
	_, parts, ok := h.split()
	if !ok {
		return nil, false
	}
	return s.root().Value(parts...)
}

// StoredRevision returns the revision of etcd at which the value at a handle was last written; 0 when it is not there.
func (s *Snapshot) StoredRevision(h Handle) int64 {
	_, parts, _ := h.split()
	return s.root().Revision(parts...)
}

// Lock is held by one program at a time. Writes that have it as a condition fail once it is lost.
type Lock struct {
	// Abandoned is true when the previous holder has not released the lock: its requests may still be in flight.
	Abandoned bool
	// Revision is the revision of etcd at which the lock was taken.
	Revision int64

	session *concurrency.Session
	mutex   *concurrency.Mutex
	// holderKey is the key that exists from when the lock is taken until it is released.
	holderKey string
	lost      chan struct{}
}

// lockTTLSeconds is for how many seconds a lock outlives a program that was killed.
const lockTTLSeconds = 10

// Lock waits for a lock and returns it. The lock is lost when the program does not renew it for lockTTLSeconds.
func (s *Store) Lock(ctx context.Context, name string) (*Lock, error) {
	operation := fmt.Sprintf("cannot take lock %q", name)
	client, err := s.connect(ctx)
	if err != nil {
		return nil, wrap(operation, translate(ctx, err))
	}
	callCtx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	grant, err := client.Grant(callCtx, lockTTLSeconds)
	if err != nil {
		return nil, wrap(operation, translate(ctx, err))
	}
	session, err := concurrency.NewSession(client, concurrency.WithLease(grant.ID), concurrency.WithTTL(lockTTLSeconds))
	if err != nil {
		return nil, wrap(operation, translate(ctx, err))
	}
	lock := &Lock{
		session: session, mutex: concurrency.NewMutex(session, ownPrefix+"lock/"+name), holderKey: ownPrefix + "lock-holder/" + name, lost: make(chan struct{}),
	}
	if err = lock.acquire(ctx); err == nil {
		err = lock.recordHolder(ctx, s)
	}
	if err != nil {
		s.closeSession(session)
		return nil, wrap(operation, translate(ctx, err))
	}
	return lock, nil
}

// acquire waits for the lock until ctx ends. The mutex alone would then wait until etcd answers, to leave the queue.
func (l *Lock) acquire(ctx context.Context) error {
	taken := make(chan error, 1)
	go func() { taken <- l.mutex.Lock(ctx) }()
	select {
	case err := <-taken:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeSession ends a session. It waits for etcd no longer than any other call does: the lease expires anyway.
func (s *Store) closeSession(session *concurrency.Session) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = session.Close()
	}()
	select {
	case <-ended:
	case <-time.After(s.options.Timeout):
	}
}

// recordHolder records that the lock is held, and finds out whether the previous holder has released it.
func (l *Lock) recordHolder(ctx context.Context, s *Store) error {
	callCtx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	result, err := l.session.Client().Txn(callCtx).If(l.mutex.IsOwner()).
		Then(clientv3.OpGet(l.holderKey, clientv3.WithCountOnly()), clientv3.OpPut(l.holderKey, l.mutex.Key())).Commit()
	switch {
	case err != nil:
		return err
	case !result.Succeeded:
		return keyError(ErrConflict, l.mutex.Key())
	}
	l.Revision = result.Header.Revision
	l.Abandoned = result.Responses[0].GetResponseRange().Count > 0
	go l.watchKey(s, result.Header.Revision) //nolint:contextcheck // It ends with the session.
	return nil
}

// watchKey closes lost when the key of the lock is deleted or the session ends. The session alone would notice only at its
// next renewal that etcd has ended it.
func (l *Lock) watchKey(s *Store, revision int64) {
	defer close(l.lost)
	ctx, cancel := context.WithCancel(l.session.Ctx())
	defer cancel()
	deleted := false
	_ = s.watch(ctx, l.mutex.Key(), func(r clientv3.WatchResponse) { // Without the watch, the end of the session shows later.
		if len(r.Events) > 0 {
			deleted = true
			cancel()
		}
	}, clientv3.WithRev(revision+1), clientv3.WithFilterPut())
	if !deleted {
		<-l.session.Done()
	}
}

// Lost is closed when the lock is lost or released.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// Release lets another program take the lock immediately. The caller must have ended all work that needs the lock.
func (l *Lock) Release() error {
	ctx, cancel := context.WithTimeout(l.session.Ctx(), lockTTLSeconds*time.Second)
	defer cancel()
	_, err := l.session.Client().Txn(ctx).If(l.mutex.IsOwner()).Then(clientv3.OpDelete(l.holderKey)).Commit()
	return wrap("cannot release lock", errors.Join(err, l.session.Close()))
}
