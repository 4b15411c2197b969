package appcontext

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// WatchBundles calls changed for each place of a context at which a bundle is saved that was written after a revision of
// etcd, with the revision of that write, and then whenever one is written, until the watch breaks or ctx ends. It returns
// why. With the last revision that it has reported, a next call continues without a gap.
func (s *Store) WatchBundles(ctx context.Context, id string, after int64, changed func(p Place, revision int64)) error {
	if err := checkName("context id", id); err != nil {
		return err
	}
	what := fmt.Sprintf("cannot follow the bundles of context %q", id)
	prefix := string(ContextHandle(id).Level(partApp))
	all, revision, err := s.read(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithMinModRev(after+1))
	if err == nil && revision < after { // Etcd was restored from a backup: what is there may be anything.
		all, revision, err = s.read(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	}
	if err != nil {
		return failed(what, err)
	}
	for _, kv := range all {
		if p, ok := placeOfStatus(string(kv.Key)); ok {
			changed(p, kv.ModRevision)
		}
	}
	return failed(what, s.watch(ctx, prefix, func(r clientv3.WatchResponse) {
		for _, event := range r.Events {
			if p, ok := placeOfStatus(string(event.Kv.Key)); ok {
				changed(p, event.Kv.ModRevision)
			}
		}
	}, clientv3.WithPrefix(), clientv3.WithRev(revision+1), clientv3.WithFilterDelete()))
}

// placeOfStatus returns the place at which a key keeps a bundle; false for all other keys.
func placeOfStatus(key string) (Place, bool) {
	id, parts, ok := splitKey(key)
	if !ok || len(parts) != 5 || parts[4] != partStatus || kindOfParts(parts[:4]) != kindCluster {
		return Place{}, false
	}
	return Place{ContextID: id, App: parts[1], Cluster: parts[3]}, true
}
