package appcontext_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
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

// model is a context: Go values by handle, relative to the handle of the context.
type model map[string]any

// drawContext draws a context, and its keys in an order in which they can be added.
func drawContext(t *rapid.T) (model, []string) {
	m := model{}
	var order []string
	put := func(key string, value any) {
		if _, ok := m[key]; !ok {
			m[key] = value
			order = append(order, key)
		}
	}
	text := rapid.String()
	for _, app := range rapid.SliceOfNDistinct(anyName(), 0, 3, rapid.ID).Draw(t, "apps") {
		a := "app/" + app + "/"
		put(a, app)
		for _, cluster := range rapid.SliceOfNDistinct(anyName(), 0, 3, rapid.ID).Draw(t, "clusters") {
			c := a + "cluster/" + cluster + "/"
			put(c, cluster)
			if rapid.Bool().Draw(t, "grouped") {
				put(c+"!@#metaGrp/", strconv.Itoa(rapid.IntRange(0, 12).Draw(t, "group")))
			}
			if rapid.Bool().Draw(t, "reported") {
				put(c+"status/", text.Filter(func(s string) bool { return s != "" }).Draw(t, "bundle"))
			}
			for _, resource := range rapid.SliceOfNDistinct(anyName(), 0, 3, rapid.ID).Draw(t, "resources") {
				r := c + "resource/" + resource + "/"
				put(r, text.Filter(func(s string) bool { return s != "" }).Draw(t, "body"))
				if rapid.Bool().Draw(t, "applied") {
					put(r+"status/", state{rapid.SampledFrom([]string{"Pending", "Applied", "Deleted"}).Draw(t, "status")})
				}
			}
		}
	}
	return m, order
}

// addAll adds a drawn context with the library.
func addAll(t *testing.T, rt *rapid.T, ac *appcontext.AppContext, h appcontext.Handle, m model, order []string) {
	t.Helper()
	for _, key := range order {
		parts := strings.Split(strings.TrimSuffix(key, "/"), "/")
		under := func(n int) appcontext.Handle { // The handle of the first n parts.
			if n == 0 {
				return h
			}
			return h.Level(strings.Join(parts[:n], "/"))
		}
		n, name := len(parts), parts[len(parts)-1]
		var got appcontext.Handle
		var err error
		switch {
		case n == 2:
			got, err = ac.AddApp(t.Context(), h, name)
		case n == 4:
			got, err = ac.AddCluster(t.Context(), under(2), name)
		case n == 5 && name == "!@#metaGrp":
			got, err = under(5), ac.AddClusterMetaGrp(t.Context(), under(4), m[key].(string)) //nolint:forcetypeassert // As drawn.
		case n == 6:
			got, err = ac.AddResource(t.Context(), under(4), name, m[key])
		default:
			got, err = ac.AddLevelValue(t.Context(), under(n-1), name, m[key])
		}
		if err != nil || got != h+appcontext.Handle(key) {
			rt.Fatalf("cannot add %q: %q, %v", key, got, err)
		}
	}
}

func TestAnyContextIsReadAsWritten(t *testing.T) {
	store := open(t, appcontext.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		m, order := drawContext(rt)
		ac, h := newContext(t, store)
		defer func() { noError(rt, ac.DeleteCompositeApp(t.Context())) }()
		addAll(t, rt, ac, h, m, order)
		want := map[string]string{string(h): strconv.Quote(ac.ID())}
		for key, value := range m {
			want[string(h)+key] = string(must(json.Marshal(value))(rt))
		}
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
