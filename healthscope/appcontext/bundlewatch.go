package appcontext

import (
	"context"
	"fmt"
)

// WatchBundles calls changed for each place of a context at which a bundle is saved that was written after a revision of
// etcd, with the revision of that write, and then whenever one is written, until the watch breaks or ctx ends. It returns
// why. With the last revision that it has reported, a next call continues without a gap.
func (s *Store) WatchBundles(ctx context.Context, id string, after int64, changed func(p Place, revision int64)) error {
	if err := checkName("context id", id); err != nil {
		return err
	}
	prefix := string(ContextHandle(id).Level(partApp))
	return failed(fmt.Sprintf("cannot follow the bundles of context %q", id), s.follow(ctx, prefix, after, func(key string, revision int64) {
		if p, ok := placeOfStatus(key); ok {
			changed(p, revision)
		}
	}))
}

// placeOfStatus returns the place at which a key keeps a bundle; false for all other keys.
func placeOfStatus(key string) (Place, bool) {
	id, parts, ok := splitKey(key)
	if !ok || len(parts) != 5 || parts[4] != partStatus || kindOfParts(parts[:4]) != kindCluster {
		return Place{}, false
	}
	return Place{ContextID: id, App: parts[1], Cluster: parts[3]}, true
}
