package appcontext_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// anyName draws a name that the library accepts: without a slash, and not the reserved name.
func anyName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"a", "a-b", "a.b", "a+b", "a0", "ab", "cluster", "resource", "status", "!@#metaGrp", "ü", "p+c", "p+c-d"}),
		rapid.StringMatching(`[a-zA-Z0-9.+_ !-]{1,12}`),
	).Filter(func(s string) bool { return s != "instruction" })
}

// addAny adds drawn apps, clusters, resources and states to a context with the library, and returns what etcd must hold.
func addAny(t *testing.T, rt *rapid.T, ac *appcontext.AppContext, h appcontext.Handle) map[string]string {
	t.Helper()
	want := map[string]string{string(h): strconv.Quote(ac.ID())}
	added := func(got appcontext.Handle, err error) func(parent appcontext.Handle, level string, value any) appcontext.Handle {
		noError(rt, err)
		return func(parent appcontext.Handle, level string, value any) appcontext.Handle {
			if got != parent.Level(level) {
				rt.Fatalf("want a handle of %q below %q, got %q", level, parent, got)
			}
			want[string(got)] = string(must(json.Marshal(value))(rt))
			return got
		}
	}
	text := rapid.String().Filter(func(s string) bool { return s != "" })
	draw := func(what string) []string { return rapid.SliceOfNDistinct(anyName(), 0, 3, rapid.ID).Draw(rt, what) }
	ctx := t.Context()
	for _, app := range draw("apps") {
		a := added(ac.AddApp(ctx, h, app))(h, "app/"+app, app)
		for _, cluster := range draw("clusters") {
			c := added(ac.AddCluster(ctx, a, cluster))(a, "cluster/"+cluster, cluster)
			if rapid.Bool().Draw(rt, "grouped") {
				group := strconv.Itoa(rapid.IntRange(0, 12).Draw(rt, "group"))
				added(c.Level("!@#metaGrp"), ac.AddClusterMetaGrp(ctx, c, group))(c, "!@#metaGrp", group)
			}
			if rapid.Bool().Draw(rt, "reported") {
				bundle := text.Draw(rt, "bundle")
				added(ac.AddLevelValue(ctx, c, "status", bundle))(c, "status", bundle)
			}
			for _, resource := range draw("resources") {
				body := text.Draw(rt, "body")
				r := added(ac.AddResource(ctx, c, resource, body))(c, "resource/"+resource, body)
				if rapid.Bool().Draw(rt, "applied") {
					status := state{rapid.SampledFrom([]string{"Pending", "Applied", "Deleted"}).Draw(rt, "status")}
					added(ac.AddLevelValue(ctx, r, "status", status))(r, "status", status)
				}
			}
		}
	}
	return want
}

func TestAnyContextIsReadAsWritten(t *testing.T) {
	store := open(t, appcontext.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		ac, h := newContext(t, store)
		defer func() { noError(rt, ac.DeleteCompositeApp(t.Context())) }()
		want := addAny(t, rt, ac, h)
		s := must(store.Snapshot(t.Context(), ac.ID()))(rt)
		if diff := cmp.Diff(want, contents(s)); diff != "" {
			rt.Fatalf("(-written +read):\n%s", diff)
		}
		var got []appcontext.Handle
		for handle := range s.All() {
			got = append(got, handle)
		}
		if diff := cmp.Diff(must(ac.GetAllHandles(t.Context(), h))(rt), got); diff != "" {
			rt.Fatalf("(-etcd's order +snapshot's):\n%s", diff)
		}
	})
}

func TestSnapshotWithEventsEqualsNewRead(t *testing.T) {
	store, client := open(t, appcontext.Options{}), rawClient(t)
	ac, h := newContext(t, store)
	cache := runCache(t, store, appcontext.CacheOptions{})
	random := rand.New(rand.NewPCG(1, 2))
	keys := []string{"meta/", "status/", "app/a/", "app/a-b/", "app/a/cluster/p+c/", "app/a/cluster/p+c/status/", "app/a/cluster/p+c/resource/r/", "app/a/cluster/p+c/resource/r/status/", "x/y/z/", "half"}
	var kept []*appcontext.Snapshot
	var then []map[string]string
	for range 300 {
		var operations []clientv3.Op
		for _, i := range random.Perm(len(keys))[:1+random.IntN(4)] {
			if key := string(h) + keys[i]; random.IntN(3) == 0 {
				operations = append(operations, clientv3.OpDelete(key))
			} else {
				operations = append(operations, clientv3.OpPut(key, strconv.Itoa(random.IntN(5))))
			}
		}
		response := must(client.Txn(t.Context()).Then(operations...).Commit())(t)
		changed := slices.ContainsFunc(response.Responses, func(r *etcdserverpb.ResponseOp) bool {
			return r.GetResponsePut() != nil || r.GetResponseDeleteRange().GetDeleted() > 0
		})
		if !changed {
			continue
		}
		s := snapshotSince(t, cache, ac.ID(), response.Header.Revision)
		want := raw(t, client, string(h))
		delete(want, string(h)+"half") // It is not a key of EMCO.
		if diff := cmp.Diff(want, contents(s)); diff != "" {
			t.Fatalf("(-etcd +cache):\n%s", diff)
		}
		kept, then = append(kept, s), append(then, want)
	}
	for i, s := range kept {
		if diff := cmp.Diff(then[i], contents(s)); diff != "" {
			t.Fatalf("snapshot %d has changed since (-then +now):\n%s", i, diff)
		}
	}
}
