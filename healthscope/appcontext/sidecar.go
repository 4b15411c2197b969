package appcontext

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

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
