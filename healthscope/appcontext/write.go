package appcontext

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
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
		t.compare(c.Lock.mutex.IsOwner())
	}
	for _, read := range c.Unchanged {
		for _, level := range c.Levels {
			h := read.Handle().Level(level)
			t.requireRevision(string(h), read.StoredRevision(h))
		}
	}
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
