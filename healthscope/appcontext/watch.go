package appcontext

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// WatchActive calls active with the ids of contexts for which rsync has work left: first with all of them, and then with
// each that gets work, until the watch breaks or ctx ends. It returns the reason.
func (s *Store) WatchActive(ctx context.Context, active func(id string)) error {
	return wrap("cannot follow active contexts", s.watchPrefix(ctx, activePrefix, 0, func(key string, _ int64) {
		active(strings.TrimSuffix(strings.TrimPrefix(key, activePrefix), "/"))
	}))
}

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

// WatchLevels calls changed as soon as it watches, and then whenever a value at one of some levels below a context has changed,
// or anywhere in it when none is given, until the watch breaks or ctx ends. It returns the reason.
func (s *Store) WatchLevels(ctx context.Context, id string, levels []string, changed func()) error {
	key, keys := string(ContextHandle(id)), []string{}
	for _, level := range levels {
		keys = append(keys, string(ContextHandle(id).Level(level)))
	}
	isRange := clientv3.WithPrefix()
	if len(keys) > 0 {
		key, isRange = slices.Min(keys), clientv3.WithRange(slices.Max(keys)+"\x00")
	}
	isOne := func(event *clientv3.Event) bool { return len(keys) == 0 || slices.Contains(keys, string(event.Kv.Key)) }
	return wrap(fmt.Sprintf("cannot follow context %q", id), s.watch(ctx, key, func(r clientv3.WatchResponse) {
		if r.Created || slices.ContainsFunc(r.Events, isOne) {
			changed()
		}
	}, isRange, clientv3.WithCreatedNotify()))
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

// placeOfStatus returns the place whose bundle a key holds. It returns false for all other keys.
func placeOfStatus(key string) (AppInCluster, bool) {
	id, parts, ok := splitKey(key)
	if !ok || len(parts) != 5 || parts[4] != partStatus || kindOfParts(parts[:4]) != kindCluster {
		return AppInCluster{}, false
	}
	return AppInCluster{ContextID: id, App: parts[1], Cluster: parts[3]}, true
}
