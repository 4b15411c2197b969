package appcontext

import (
	"context"
	"fmt"
)

// WatchBundles calls changed for each place of a context whose saved bundle was written after a revision of etcd, and then
// whenever one is written, with the revision of the write, until the watch breaks or ctx ends. It returns the reason. A call
// with the last revision that was reported continues without a gap.
func (s *Store) WatchBundles(ctx context.Context, id string, after int64, changed func(p AppInCluster, revision int64)) error {
	if err := checkName("context id", id); err != nil {
		return err
	}
	prefix := string(ContextHandle(id).Level(partApp))
	return wrap(fmt.Sprintf("cannot follow the bundles of context %q", id), s.watchPrefix(ctx, prefix, after, func(key string, revision int64) {
		if p, ok := placeOfStatus(key); ok {
			changed(p, revision)
		}
	}))
}

// placeOfStatus returns the place whose bundle a key holds. It returns false for all other keys.
func placeOfStatus(key string) (AppInCluster, bool) {
	id, parts, ok := splitKey(key)
	if !ok || len(parts) != 5 || parts[4] != partStatus || kindOfParts(parts[:4]) != kindCluster {
		return AppInCluster{}, false
	}
	return AppInCluster{ContextID: id, App: parts[1], Cluster: parts[3]}, true
}
