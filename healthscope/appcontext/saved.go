package appcontext

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// AppInCluster is where the bundle of an app in a cluster is saved.
type AppInCluster struct {
	// ContextID is the id of the context: the first part of the bundle's name.
	ContextID string
	// App is the name of the app: what follows.
	App string
	// Cluster is the name of the cluster, <provider>+<cluster>.
	Cluster string
}

// String returns the names, with slashes between them.
func (p AppInCluster) String() string {
	return strings.Join([]string{p.ContextID, p.App, p.Cluster}, "/")
}

// Handle returns the handle of the app in the cluster.
func (p AppInCluster) Handle() Handle {
	return ContextHandle(p.ContextID).Level(partApp + "/" + p.App).Level(partCluster + "/" + p.Cluster)
}

func (p AppInCluster) check() error {
	return cmp.Or(checkName("context id", p.ContextID), checkNode("app name", p.App), checkName("cluster name", p.Cluster))
}

// SavedBundle describes a saved bundle, and is kept in a key beside it. In JSON, Seen has milliseconds, in UTC.
type SavedBundle struct {
	// Seen is when the bundle was seen to be as it is saved.
	Seen time.Time `json:"seen"`
	// Namespace, Name, UID and ResourceVersion are those of the ResourceBundleState.
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	// Digest differs for bundles that would be saved differently. The caller defines it.
	Digest string `json:"digest"`
	// Hub is the hub that has saved it.
	Hub string `json:"hub"`
	// Ready holds the written values of EMCO's readiness keys, by their level below the place; nil when they are not written.
	Ready map[string]bool `json:"ready,omitempty"`
}

// StoredBundle is what etcd holds at a place.
type StoredBundle struct {
	// Place is the app in the cluster.
	Place AppInCluster
	// AsOf is the revision of etcd at the read. A later read has an earlier one only if etcd was restored meanwhile.
	AsOf int64
	// Exists is true when the context has the app in the cluster.
	Exists bool
	// Revision is the revision of etcd at which the bundle there was written, by any program; 0 when there is none.
	Revision int64
	// Saved describes the bundle that SaveBundle has saved last; nil when it has saved none.
	Saved *SavedBundle
	// SavedRevision is the revision at which Saved was written; 0 when there is none.
	SavedRevision int64
}

// IsOurs reports whether SaveBundle has written the bundle: it writes bundle and SavedBundle at one revision.
func (b StoredBundle) IsOurs() bool { return b.Revision > 0 && b.Revision == b.SavedRevision }

// sidecarKey returns the key under ownPrefix that belongs to a key of EMCO.
func sidecarKey(h Handle) string { return strings.TrimSuffix(ownPrefix, "/") + string(h) }

// sidecarPrefix returns the prefix of the sidecar keys of a handle and everything below it.
func sidecarPrefix(h Handle) string {
	if _, parts, _ := h.split(); len(parts) == 0 {
		h = h.Level(partApp) // The other keys there belong to the indices.
	}
	return sidecarKey(h)
}

// ReadCluster returns the keys at a place without their values, except the order of the resources.
func (s *Store) ReadCluster(ctx context.Context, p AppInCluster) (Cluster, error) {
	what := fmt.Sprintf("cannot read the resources of %q", p)
	if err := p.check(); err != nil {
		return Cluster{}, wrap(what, err)
	}
	order := string(p.Handle().Level(partResource).Level(partInstruction).Level(partOrder))
	results, err := s.readEach(ctx, []clientv3.Op{
		clientv3.OpGet(string(p.Handle()), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(order),
	})
	if err != nil {
		return Cluster{}, wrap(what, err)
	}
	values := results[0].Kvs
	for _, kv := range values {
		if string(kv.Key) == order { // Both are of one revision.
			kv.Value = results[1].Kvs[0].Value
		}
	}
	snapshot := snapshotOf(p.ContextID, results[0].Header.GetRevision(), values)
	return Cluster{snapshot.root().descend(partApp, p.App, partCluster, p.Cluster)}, nil
}

// ReadBundle returns what etcd holds at a place, without the bundle itself.
func (s *Store) ReadBundle(ctx context.Context, p AppInCluster) (StoredBundle, error) {
	stored := StoredBundle{Place: p}
	if err := p.check(); err != nil {
		return stored, wrap(opReadBundle, err)
	}
	h := p.Handle()
	results, err := s.readEach(ctx, []clientv3.Op{
		clientv3.OpGet(string(h), clientv3.WithCountOnly()),
		clientv3.OpGet(string(h.Level(partStatus)), clientv3.WithKeysOnly()),
		clientv3.OpGet(sidecarKey(h.Level(partStatus))),
	})
	if err != nil {
		return stored, wrap(fmt.Sprintf("%s %q", opReadBundle, p), err)
	}
	stored.AsOf, stored.Exists = results[0].Header.GetRevision(), results[0].Count > 0
	for _, kv := range results[1].Kvs {
		stored.Revision = kv.ModRevision
	}
	for _, kv := range results[2].Kvs {
		stored.Saved, stored.SavedRevision = &SavedBundle{}, kv.ModRevision
		if decode(string(kv.Key), kv.Value, stored.Saved) != nil { // The key still shows that SaveBundle wrote the bundle.
			stored.Saved = &SavedBundle{}
		}
	}
	return stored, nil
}

// SaveBundle saves the status of a bundle, in JSON, as EMCO's rsync does, at the place that ReadBundle has returned, and
// its description beside it. It fails with ErrNotFound when the place no longer exists, and with ErrConflict when another
// program has written there since. It replaces a bundle of any program: call IsOurs before.
func (s *Store) SaveBundle(ctx context.Context, at StoredBundle, status string, b SavedBundle) error {
	h := at.Place.Handle()
	b.Seen = b.Seen.UTC().Truncate(time.Millisecond)
	t := &transaction{}
	t.require(string(h))
	t.requireUnchanged(at)
	t.put(string(h.Level(partStatus)), status)
	t.put(sidecarKey(h.Level(partStatus)), b)
	resources, app := at.readiness(b)
	if err := s.WriteLevels(ctx, at.Place.ContextID, resources, Condition{}); err != nil { // There may be more of them than a transaction takes.
		return err
	}
	for _, w := range app {
		t.put(w.key(), w.Value)
	}
	return wrap(fmt.Sprintf("cannot save bundle %q", at.Place), s.commit(ctx, t))
}

// readiness returns the readiness keys that differ from what SaveBundle has written before: those of resources, and that of
// the app in the cluster, which says that all are ready and is written after them.
func (b StoredBundle) readiness(saved SavedBundle) (resources, app []Write) {
	var before map[string]bool
	if b.IsOurs() {
		before = b.Saved.Ready
	}
	for _, level := range slices.Sorted(maps.Keys(saved.Ready)) {
		previous, written := before[level]
		switch w := (Write{Handle: b.Place.Handle().Level(level), Value: saved.Ready[level]}); {
		case written && previous == saved.Ready[level]:
		case strings.HasPrefix(level, partResource+"/"):
			resources = append(resources, w)
		default:
			app = append(app, w)
		}
	}
	return resources, app
}

// RemoveBundle removes the bundle that SaveBundle has saved at a place, as ReadBundle has returned it, and what is kept
// beside it. The bundle of another program stays. It fails with ErrConflict when another program has written there since.
func (s *Store) RemoveBundle(ctx context.Context, at StoredBundle) error {
	h := at.Place.Handle()
	t := &transaction{}
	t.requireUnchanged(at)
	if at.IsOurs() {
		t.remove(string(h.Level(partStatus)))
	}
	t.remove(sidecarKey(h.Level(partStatus)))
	return wrap(fmt.Sprintf("cannot remove bundle %q", at.Place), s.commit(ctx, t))
}

// requireUnchanged adds the condition that nothing was written at a place since it was read.
func (t *transaction) requireUnchanged(at StoredBundle) {
	status := at.Place.Handle().Level(partStatus)
	t.requireRevision(string(status), at.Revision)
	t.requireRevision(sidecarKey(status), at.SavedRevision)
}

// SavedBundles returns what SaveBundle has saved, by place, including places where another program has written since. Its
// pages are read at different revisions: call ReadBundle before acting on a bundle.
func (s *Store) SavedBundles(ctx context.Context) (map[AppInCluster]SavedBundle, error) {
	all := map[AppInCluster]SavedBundle{}
	prefix := ownPrefix + ownContext + "/"
	end := clientv3.GetPrefixRangeEnd(prefix)
	for from := prefix; ; {
		page, _, err := s.read(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize))
		if err != nil {
			return nil, wrap("cannot find saved bundles", err)
		}
		for _, kv := range page {
			if p, ok := placeOfSidecar(string(kv.Key)); ok {
				var b SavedBundle
				_ = decode(string(kv.Key), kv.Value, &b) // A description that cannot be decoded still shows that there is a bundle.
				all[p] = b
			}
		}
		if len(page) < pageSize {
			return all, nil
		}
		from = string(page[len(page)-1].Key) + "\x00"
	}
}

// placeOfSidecar returns the place of a key that SaveBundle keeps beside a bundle. It is false for other keys under ownPrefix.
func placeOfSidecar(key string) (AppInCluster, bool) {
	return placeOfStatus(strings.TrimPrefix(key, strings.TrimSuffix(ownPrefix, "/")))
}

// observation is when a saved bundle was seen, and the revision at which both were written.
type observation struct {
	at       time.Time
	revision int64
}

// update applies the description that is kept beside a bundle, or its deletion when kv is nil.
func (m observations) update(key string, kv *mvccpb.KeyValue) {
	p, ok := placeOfSidecar(key)
	if !ok {
		return
	}
	var b SavedBundle
	if kv == nil || decode(key, kv.Value, &b) != nil {
		delete(m[p.ContextID], p.Handle().Level(partStatus))
		if len(m[p.ContextID]) == 0 {
			delete(m, p.ContextID)
		}
		return
	}
	if m[p.ContextID] == nil {
		m[p.ContextID] = map[Handle]observation{}
	}
	m[p.ContextID][p.Handle().Level(partStatus)] = observation{b.Seen, kv.ModRevision}
}

// observations hold when saved bundles were seen, by context and by the handle of their status.
type observations map[string]map[Handle]observation

// Seen returns when the bundle that is saved at a handle was seen. revision is the one at which it was written:
// Cluster.Revision("status"). Seen returns the zero time for a bundle that SaveBundle has not written: EMCO keeps no time.
func (v *View) Seen(status Handle, revision int64) time.Time {
	if s, ok := v.observations[status]; ok && s.revision == revision {
		return s.at
	}
	return time.Time{}
}
