package appcontext

import (
	"slices"
	"strconv"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestWhoDoesNotReceiveCostsLittle has one key change again and again while nobody receives.
func TestWhoDoesNotReceiveCostsLittle(t *testing.T) {
	const key = "/context/7/status/"
	w := &watch{id: "7", changed: make(chan struct{}, 1), news: map[Handle]struct{}{}}
	w.pending.Snapshot = snapshotOf("7", 1, nil)
	for n := range int64(10_000) {
		kv := &mvccpb.KeyValue{Key: []byte(key), Value: strconv.AppendInt(nil, n, 10), ModRevision: n + 2}
		w.apply([]*clientv3.Event{{Type: mvccpb.PUT, Kv: kv}}, n+2)
	}
	if len(w.news) != 1 {
		t.Errorf("%d handles are kept of one that has changed", len(w.news))
	}
	if u := w.take(); !slices.Equal(u.Changed, []Handle{key}) {
		t.Errorf("told of %v, want %s once", u.Changed, key)
	}
	if u := w.take(); u.Changed != nil {
		t.Errorf("told again of %v", u.Changed)
	}
}
