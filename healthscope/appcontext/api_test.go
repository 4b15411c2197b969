package appcontext_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// TestErrorsSayWhatIsWrong calls each function with arguments that it must reject, on a context with app "a", cluster "p+c" and
// resource "r+Kind".
func TestErrorsSayWhatIsWrong(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	a, c, r := add(t, ac, h, "a", "p+c", "r+Kind")
	other, otherHandle := newContext(t, store)
	ctx := t.Context()
	just := func(_ any, err error) error { return err }
	cases := map[string]struct {
		err  error
		kind error
		want []string
	}{
		"load without id":              {just(other.LoadAppContext(ctx, "")), appcontext.ErrInvalid, []string{"context id"}},
		"load a path":                  {just(appcontext.NewAppContext(store).LoadAppContext(ctx, "1/app")), appcontext.ErrInvalid, []string{"context id", `"1/app"`, `"/"`}},
		"load what is not there":       {just(appcontext.NewAppContext(store).LoadAppContext(ctx, "4711")), appcontext.ErrNotFound, []string{"cannot find context: cannot read meta data: Key doesn't exist", "/context/4711/"}},
		"before init":                  {just(appcontext.NewAppContext(store).CreateCompositeApp(ctx)), appcontext.ErrInvalid, []string{"context id"}},
		"negative id":                  {just(appcontext.NewAppContext(store).InitAppContextWithValue(-1)), appcontext.ErrInvalid, []string{"-1"}},
		"create again":                 {just(ac.CreateCompositeApp(ctx)), appcontext.ErrExists, []string{"cannot create context: Key exists", string(h)}},
		"no meta data":                 {just(ac.GetCompositeAppMeta(ctx)), appcontext.ErrNotFound, []string{"cannot read meta data"}},
		"add app again":                {just(ac.AddApp(ctx, h, "a")), appcontext.ErrExists, []string{"cannot add level: Key exists", string(a)}},
		"add app without name":         {just(ac.AddApp(ctx, h, "")), appcontext.ErrInvalid, []string{"level value"}},
		"add app named as a path":      {just(ac.AddApp(ctx, h, "a/b")), appcontext.ErrInvalid, []string{`"a/b"`, `must not contain "/"`}},
		"add app named instruction":    {just(ac.AddApp(ctx, h, "instruction")), appcontext.ErrInvalid, []string{`"instruction": it is reserved`}},
		"add app with broken name":     {just(ac.AddApp(ctx, h, "a\xff")), appcontext.ErrInvalid, []string{"UTF-8"}},
		"add app to an app":            {just(ac.AddApp(ctx, a, "b")), appcontext.ErrInvalid, []string{"handle", string(a), "composite app"}},
		"add app to another context":   {just(ac.AddApp(ctx, otherHandle, "b")), appcontext.ErrInvalid, []string{"handle", ac.ID()}},
		"add app to half a handle":     {just(ac.AddApp(ctx, h[:len(h)-1], "b")), appcontext.ErrInvalid, []string{"handle"}},
		"add cluster to a missing app": {just(ac.AddCluster(ctx, h.Level("app/x"), "p+d")), appcontext.ErrNotFound, []string{"cannot add level: Key doesn't exist", "/app/x/"}},
		"add cluster to a cluster":     {just(ac.AddCluster(ctx, c, "p+d")), appcontext.ErrInvalid, []string{"handle of an app"}},
		"add empty group":              {ac.AddClusterMetaGrp(ctx, c, ""), appcontext.ErrInvalid, []string{"level value"}},
		"add resource without name":    {just(ac.AddResource(ctx, c, "", "x")), appcontext.ErrInvalid, []string{"resource name"}},
		"add resource without value":   {just(ac.AddResource(ctx, c, "x+Kind", "")), appcontext.ErrInvalid, []string{"resource value"}},
		"add broken resource":          {just(ac.AddResource(ctx, c, "x+Kind", "\xff")), appcontext.ErrInvalid, []string{"UTF-8"}},
		"add what JSON cannot hold":    {just(ac.AddLevelValue(ctx, c, "x", func() {})), appcontext.ErrInvalid, []string{"it is no JSON"}},
		"add nothing":                  {just(ac.AddLevelValue(ctx, c, "x", nil)), appcontext.ErrInvalid, []string{"cannot use value"}},
		"add a level without name":     {just(ac.AddLevelValue(ctx, c, "", "x")), appcontext.ErrInvalid, []string{"level"}},
		"add a level with an end":      {just(ac.AddLevelValue(ctx, c, "status/", "x")), appcontext.ErrInvalid, []string{`"status/"`}},
		"instruct at no level":         {just(ac.AddInstruction(ctx, h, "cluster", "order", "x")), appcontext.ErrInvalid, []string{"instruction level", `"cluster"`}},
		"instruct with no type":        {just(ac.AddInstruction(ctx, h, "app", "hurry", "x")), appcontext.ErrInvalid, []string{"instruction type", `"hurry"`}},
		"instruct the wrong handle":    {just(ac.AddInstruction(ctx, a, "resource", "order", "x")), appcontext.ErrInvalid, []string{"handle of a cluster"}},
		"instruct nothing":             {just(ac.AddInstruction(ctx, h, "app", "order", "")), appcontext.ErrInvalid, []string{"instruction value"}},
		"get app without name":         {just(ac.GetAppHandle(ctx, "")), appcontext.ErrInvalid, []string{"app name"}},
		"get a missing app":            {just(ac.GetAppHandle(ctx, "x")), appcontext.ErrNotFound, []string{"cannot find app", "Key doesn't exist"}},
		"get cluster without name":     {just(ac.GetClusterHandle(ctx, "a", "")), appcontext.ErrInvalid, []string{"cluster name"}},
		"get a missing cluster":        {just(ac.GetClusterHandle(ctx, "a", "p+x")), appcontext.ErrNotFound, []string{"cannot find cluster"}},
		"get resource without name":    {just(ac.GetResourceHandle(ctx, "a", "p+c", "")), appcontext.ErrInvalid, []string{"resource name"}},
		"get a missing resource":       {just(ac.GetResourceHandle(ctx, "a", "p+c", "x+Kind")), appcontext.ErrNotFound, []string{"cannot find resource"}},
		"get no cluster status":        {just(ac.GetClusterStatusHandle(ctx, "a", "p+c")), appcontext.ErrNotFound, []string{"/status/"}},
		"get no resource status":       {just(ac.GetResourceStatusHandle(ctx, "a", "p+c", "r+Kind")), appcontext.ErrNotFound, []string{"/status/"}},
		"get group of no cluster":      {just(ac.GetClusterMetaHandle(ctx, "a", "p+x")), appcontext.ErrNotFound, []string{"cannot find cluster"}},
		"get a missing level":          {just(ac.GetLevelHandle(ctx, c, "status")), appcontext.ErrNotFound, []string{"cannot find level status"}},
		"list clusters of no app":      {just(ac.GetClusterNames(ctx, "x")), appcontext.ErrNotFound, []string{"cannot list", "/app/x/cluster/"}},
		"list resources of no cluster": {just(ac.GetResourceNames(ctx, "a", "p+x")), appcontext.ErrNotFound, []string{"cannot list"}},
		"groups of no app":             {just(ac.GetClusterGroupMap(ctx, "x")), appcontext.ErrNotFound, []string{"cannot list"}},
		"handles of nothing":           {just(ac.GetAllHandles(ctx, a.Level("x"))), appcontext.ErrNotFound, []string{"cannot list: Key doesn't exist"}},
		"value of nothing":             {just(ac.GetValue(ctx, a.Level("x"))), appcontext.ErrNotFound, []string{"cannot read value: Key doesn't exist"}},
		"get no instruction":           {just(ac.GetAppInstruction(ctx, "order")), appcontext.ErrNotFound, []string{"cannot read value"}},
		"get instruction of no type":   {just(ac.GetResourceInstruction(ctx, "a", "p+c", "x")), appcontext.ErrInvalid, []string{"instruction type"}},
		"update nothing":               {ac.UpdateValue(ctx, a.Level("x"), "y"), appcontext.ErrNotFound, []string{"cannot update value: Key doesn't exist"}},
		"update an app as a resource":  {ac.UpdateResourceValue(ctx, a, "y"), appcontext.ErrInvalid, []string{"handle of a resource"}},
		"delete a context as an app":   {ac.DeleteApp(ctx, h), appcontext.ErrInvalid, []string{"handle of an app"}},
		"delete an app as a cluster":   {ac.DeleteCluster(ctx, a), appcontext.ErrInvalid, []string{"handle of a cluster"}},
		"delete a resource's group":    {ac.DeleteClusterMetaGrpHandle(ctx, r), appcontext.ErrInvalid, []string{"cluster"}},
		"delete no instruction":        {ac.DeleteInstruction(ctx, a), appcontext.ErrInvalid, []string{"instruction"}},
		"snapshot of nothing":          {just(store.Snapshot(ctx, "4711")), appcontext.ErrNotFound, []string{"4711"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(tc.err, tc.kind) {
				t.Fatalf("want %q, got: %v", tc.kind, tc.err)
			}
			for _, want := range tc.want {
				if !strings.Contains(tc.err.Error(), want) {
					t.Errorf("want %q in: %v", want, tc.err)
				}
			}
		})
	}
	want := map[string]string{
		string(h): `"` + ac.ID() + `"`, string(a): `"a"`, string(c): `"p+c"`, string(r): `"kind: Test\n"`,
	}
	if diff := cmp.Diff(want, raw(t, rawClient(t, endpoint(t)), string(h))); diff != "" {
		t.Errorf("a refused call has changed something (-want +got):\n%s", diff)
	}
}

func TestDeleteRemovesOnlyKeysBelow(t *testing.T) {
	store := open(t, appcontext.Options{})
	client := rawClient(t, endpoint(t))
	ctx := t.Context()
	short, long := appcontext.NewAppContext(store), appcontext.NewAppContext(store)
	for ac, id := range map[*appcontext.AppContext]int64{short: 9, long: 90} {
		must(ac.InitAppContextWithValue(id))(t)
		h := must(ac.CreateCompositeApp(ctx))(t)
		add(t, ac, h, "a", "p+c", "r+Kind")
		add(t, ac, h, "ab", "p+c", "r+Kind")
		must(ac.AddCluster(ctx, must(ac.GetAppHandle(ctx, "a"))(t), "p+cd"))(t)
		must(ac.AddInstruction(ctx, h, "app", "order", `{"apporder":["a"]}`))(t)
	}
	c := must(short.GetClusterHandle(ctx, "a", "p+c"))(t)
	noError(t, short.AddClusterMetaGrp(ctx, c, "3"))
	steps := []struct {
		name   string
		delete func() error
		want   []string
	}{
		{"group", func() error { return short.DeleteClusterMetaGrpHandle(ctx, c) }, []string{"", "app/a/", "app/a/cluster/p+c/", "app/a/cluster/p+c/resource/r+Kind/", "app/a/cluster/p+cd/", "app/ab/", "app/ab/cluster/p+c/", "app/ab/cluster/p+c/resource/r+Kind/", "app/instruction/order/"}},
		{"instruction", func() error {
			return short.DeleteInstruction(ctx, appcontext.ContextHandle("9").Level("app/instruction/order"))
		}, []string{"", "app/a/", "app/a/cluster/p+c/", "app/a/cluster/p+c/resource/r+Kind/", "app/a/cluster/p+cd/", "app/ab/", "app/ab/cluster/p+c/", "app/ab/cluster/p+c/resource/r+Kind/"}},
		{"cluster", func() error { return short.DeleteCluster(ctx, c) }, []string{"", "app/a/", "app/a/cluster/p+cd/", "app/ab/", "app/ab/cluster/p+c/", "app/ab/cluster/p+c/resource/r+Kind/"}},
		{"cluster again", func() error { return short.DeleteCluster(ctx, c) }, []string{"", "app/a/", "app/a/cluster/p+cd/", "app/ab/", "app/ab/cluster/p+c/", "app/ab/cluster/p+c/resource/r+Kind/"}},
		{"app", func() error { return short.DeleteApp(ctx, must(short.GetAppHandle(ctx, "a"))(t)) }, []string{"", "app/ab/", "app/ab/cluster/p+c/", "app/ab/cluster/p+c/resource/r+Kind/"}},
		{"context", func() error { return short.DeleteCompositeApp(ctx) }, nil},
	}
	before := raw(t, client, "/context/90/")
	for _, step := range steps {
		if err := step.delete(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		got := raw(t, client, "/context/9/")
		want := map[string]bool{}
		for _, key := range step.want {
			want["/context/9/"+key] = true
		}
		for key := range got {
			if !want[key] {
				t.Errorf("%s: %s is still there", step.name, key)
			}
			delete(want, key)
		}
		for key := range want {
			t.Errorf("%s: %s is gone", step.name, key)
		}
	}
	if diff := cmp.Diff(before, raw(t, client, "/context/90/")); diff != "" {
		t.Errorf("context 90 has lost something with context 9 (-want +got):\n%s", diff)
	}
	if len(before) == 0 {
		t.Error("context 90 was never there")
	}
}

func TestValuesAreReadAsWritten(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	client := rawClient(t, endpoint(t))
	cases := map[string]struct {
		value  any
		stored string
		want   any
	}{
		"text":           {"a", `"a"`, "a"},
		"JSON in text":   {`{"a":1}`, `"{\"a\":1}"`, `{"a":1}`},
		"HTML":           {"<a&b>", `"\u003ca\u0026b\u003e"`, "<a&b>"},
		"line separator": {"a\u2028b", `"a\u2028b"`, "a\u2028b"},
		"umlaut":         {"ü", `"ü"`, "ü"},
		"newline":        {"a\n", `"a\n"`, "a\n"},
		"truth":          {true, "true", true},
		"large number":   {int64(8754802609091293874), "8754802609091293874", json.Number("8754802609091293874")},
		"fraction":       {0.1, "0.1", json.Number("0.1")},
		"struct":         {state{"Applied"}, `{"Status":"Applied"}`, map[string]any{"Status": "Applied"}},
		"list":           {[]string{"a"}, `["a"]`, []any{"a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			level := strings.ReplaceAll(name, " ", "-")
			at := must(ac.AddLevelValue(t.Context(), h, level, tc.value))(t)
			if got := raw(t, client, string(at))[string(at)]; got != tc.stored {
				t.Errorf("stored: want %s, got %s", tc.stored, got)
			}
			if diff := cmp.Diff(tc.want, must(ac.GetValue(t.Context(), at))(t)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
	broken := h.Level("broken")
	putRaw(t, client, map[string]string{string(broken): `{"a":1} trailing`})
	if _, err := ac.GetValue(t.Context(), broken); !errors.Is(err, appcontext.ErrMalformed) || !strings.Contains(err.Error(), string(broken)) {
		t.Errorf("want ErrMalformed with the key, got: %v", err)
	}
}

func TestTooLargeValueIsRejectedBeforeSending(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	_, c, r := add(t, ac, h, "a", "p+c", "r+Kind")
	// Etcd must accept the largest value that the library accepts.
	fits := 0
	for low, high := 0, 2<<20; low < high; {
		size := (low + high + 1) / 2
		switch err := ac.UpdateResourceValue(t.Context(), r, strings.Repeat("x", size)); {
		case err == nil:
			low, fits = size, size
		case errors.Is(err, appcontext.ErrTooLarge) && strings.Contains(err.Error(), string(r)):
			high = size - 1
		default:
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
	if limit := 1536 << 10; fits < limit-4096 || fits >= limit {
		t.Errorf("want values up to a little less than %d bytes, got %d", limit, fits)
	}
	if _, err := ac.AddResource(t.Context(), c, strings.Repeat("n", 4096)+"+Kind", "x"); !errors.Is(err, appcontext.ErrTooLarge) || !strings.Contains(err.Error(), "4096") {
		t.Errorf("want a long key to be refused, got: %v", err)
	}
}

func TestLevelsAreSetAndRemovedTogether(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	_, c, _ := add(t, ac, h, "a", "p+c", "r+Kind")
	client := rawClient(t, endpoint(t))
	for i := range 2 {
		noError(t, set(t.Context(), store, c, map[string]any{"status": fmt.Sprintf(`{"n":%d}`, i), "seen": i}))
	}
	response, err := client.Get(t.Context(), string(c), clientv3.WithPrefix())
	noError(t, err)
	revisions := map[string]int64{}
	for _, kv := range response.Kvs {
		revisions[strings.TrimPrefix(string(kv.Key), string(c))] = kv.ModRevision
	}
	if revisions["status/"] == 0 || revisions["status/"] != revisions["seen/"] {
		t.Errorf("want both levels written at one revision, got %v", revisions)
	}
	noError(t, set(t.Context(), store, c, map[string]any{"status": nil, "seen": nil}))
	snapshot := must(store.Snapshot(t.Context(), ac.ID()))(t)
	app, _ := snapshot.App("a")
	cluster, _ := app.Cluster("p+c")
	if got := must(cluster.Bundle())(t); got != "" || cluster.Revision("status") != 0 {
		t.Errorf("want no bundle, got %q of revision %d", got, cluster.Revision("status"))
	}
}

func TestContextIDsAreUniqueNumbers(t *testing.T) {
	ac := appcontext.NewAppContext(nil)
	seen := map[string]bool{}
	for range 100 {
		id := ac.InitAppContext()
		if n, err := strconv.ParseInt(id, 10, 64); err != nil || n < 0 || seen[id] || id != ac.ID() {
			t.Fatalf("%q is no new id: %v", id, err)
		}
		seen[id] = true
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, err := ac.AddApp(ctx, h, "a"); !errors.Is(err, stop) || errors.Is(err, appcontext.ErrUnavailable) {
		t.Errorf("want the caller's own reason, got: %v", err)
	}
}
