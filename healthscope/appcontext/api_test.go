package appcontext_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// TestErrorsSayWhatIsWrong calls each function with arguments that it must reject.
func TestErrorsSayWhatIsWrong(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	ctx, store, ac, h, a, c, r := t.Context(), f.store, f.ac, f.h, f.a, f.c, f.r
	other, otherHandle := newContext(t, store)
	putRaw(t, f.client, map[string]string{"/context/4712/": `"4713"`})
	before := raw(t, f.client, string(h))
	for name, tc := range map[string]struct {
		err  error
		kind error
		want []string
	}{
		"load without id":              {just(other.LoadAppContext(ctx, "")), appcontext.ErrInvalid, []string{"context id"}},
		"load a path":                  {just(appcontext.NewAppContext(store).LoadAppContext(ctx, "1/app")), appcontext.ErrInvalid, []string{"context id", `"1/app"`, `"/"`}},
		"load what is not there":       {just(appcontext.NewAppContext(store).LoadAppContext(ctx, "4711")), appcontext.ErrNotFound, []string{"cannot find context: cannot read meta data: Key doesn't exist", "/context/4711/"}},
		"load one with another id":     {just(appcontext.NewAppContext(store).LoadAppContext(ctx, "4712")), appcontext.ErrMalformed, []string{"/context/4712/"}},
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
	} {
		t.Run(name, func(t *testing.T) { wantError(t, tc.err, tc.kind, tc.want...) })
	}
	if diff := cmp.Diff(before, raw(t, f.client, string(h))); diff != "" {
		t.Errorf("a refused call has changed something (-before +after):\n%s", diff)
	}
}

func TestDeleteRemovesOnlyKeysBelow(t *testing.T) {
	store, client, ctx := open(t, appcontext.Options{}), rawClient(t), t.Context()
	ac := appcontext.NewAppContext(store)
	for _, id := range []int64{90, 9} {
		must(ac.InitAppContextWithValue(id))(t)
		h := must(ac.CreateCompositeApp(ctx))(t)
		a, _, _ := add(t, ac, h, "a", "p+c", "r+Kind")
		must(ac.AddCluster(ctx, a, "p+cd"))(t)
		add(t, ac, h, "ab", "p+c", "r+Kind")
		must(ac.AddInstruction(ctx, h, "app", "order", `{"apporder":["a"]}`))(t)
	}
	c := must(ac.GetClusterHandle(ctx, "a", "p+c"))(t)
	noError(t, errors.Join(ac.AddClusterMetaGrp(ctx, c, "3"), ac.AddClusterMetaGrp(ctx, "/context/9/app/a/cluster/p+cd/", "3")))
	left := raw(t, client, "/context/9")
	for _, step := range []struct {
		name   string
		delete func() error
		want   []string
	}{
		{"group of a cluster", func() error { return ac.DeleteClusterMetaGrpHandle(ctx, c) }, []string{"app/a/cluster/p+c/!@#metaGrp/"}},
		{"group", func() error {
			return ac.DeleteClusterMetaGrpHandle(ctx, must(ac.GetClusterMetaHandle(ctx, "a", "p+cd"))(t))
		}, []string{"app/a/cluster/p+cd/!@#metaGrp/"}},
		{"instruction", func() error { return ac.DeleteInstruction(ctx, "/context/9/app/instruction/order/") }, []string{"app/instruction/order/"}},
		{"cluster", func() error { return ac.DeleteCluster(ctx, c) }, []string{"app/a/cluster/p+c/", "app/a/cluster/p+c/resource/r+Kind/"}},
		{"app", func() error { return ac.DeleteApp(ctx, "/context/9/app/a/") }, []string{"app/a/", "app/a/cluster/p+cd/"}},
		{"context", func() error { return ac.DeleteCompositeApp(ctx) }, []string{"", "app/ab/", "app/ab/cluster/p+c/", "app/ab/cluster/p+c/resource/r+Kind/"}},
	} {
		noError(t, step.delete())
		for _, key := range step.want {
			if _, ok := left["/context/9/"+key]; !ok {
				t.Errorf("%s: %q was never there", step.name, key)
			}
			delete(left, "/context/9/"+key)
		}
		if diff := cmp.Diff(left, raw(t, client, "/context/9")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestValuesAreReadAsWritten(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	for name, tc := range map[string]struct {
		value  any
		stored string
		want   any
	}{
		"text":         {"a", `"a"`, "a"},
		"JSON in text": {`{"a":1}`, `"{\"a\":1}"`, `{"a":1}`},
		"HTML":         {"<a&b>", `"\u003ca\u0026b\u003e"`, "<a&b>"},
		"truth":        {true, "true", true},
		"large number": {int64(8754802609091293874), "8754802609091293874", json.Number("8754802609091293874")},
		"fraction":     {0.1, "0.1", json.Number("0.1")},
		"struct":       {state{"Applied"}, `{"Status":"Applied"}`, map[string]any{"Status": "Applied"}},
		"list":         {[]string{"a"}, `["a"]`, []any{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			at := must(f.ac.AddLevelValue(t.Context(), f.h, strings.ReplaceAll(name, " ", "-"), tc.value))(t)
			if got := raw(t, f.client, string(at))[string(at)]; got != tc.stored {
				t.Errorf("stored: want %s, got %s", tc.stored, got)
			}
			if diff := cmp.Diff(tc.want, must(f.ac.GetValue(t.Context(), at))(t)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
	broken := string(f.h.Level("broken"))
	putRaw(t, f.client, map[string]string{broken: `{"a":1} trailing`})
	wantError(t, just(f.ac.GetValue(t.Context(), appcontext.Handle(broken))), appcontext.ErrMalformed, broken)
}

func TestTooLargeValueIsRejectedBeforeSending(t *testing.T) {
	f := newFixture(t, appcontext.Options{Timeout: testTimeout})
	// Etcd must accept the largest value that the library accepts, which is a little less than its limit.
	const limit = 1536 << 10
	fits := 0
	for low, high := limit-4096, limit; low < high; {
		size := (low + high + 1) / 2
		switch err := f.ac.UpdateResourceValue(t.Context(), f.r, strings.Repeat("x", size)); {
		case err == nil:
			low, fits = size, size
		case errors.Is(err, appcontext.ErrUnavailable): // Etcd has too much to do: once more.
		default:
			wantError(t, err, appcontext.ErrTooLarge, string(f.r))
			high = size - 1
		}
	}
	if fits == 0 || fits == limit {
		t.Errorf("want values up to a little less than %d bytes, got %d", limit, fits)
	}
	wantError(t, just(f.ac.AddResource(t.Context(), f.c, strings.Repeat("n", 4096)+"+Kind", "x")), appcontext.ErrTooLarge, "4096")
	// Etcd has a smaller limit than the options say.
	store := open(t, appcontext.Options{Timeout: testTimeout, MaxRequestBytes: 2 * limit})
	wantError(t, set(t.Context(), store, f.h, map[string]any{"x": strings.Repeat("x", limit)}), appcontext.ErrTooLarge)
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
	ac, h := newContext(t, open(t, appcontext.Options{}))
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if err := just(ac.AddApp(ctx, h, "a")); !errors.Is(err, stop) || errors.Is(err, appcontext.ErrUnavailable) {
		t.Errorf("want the caller's own reason, got: %v", err)
	}
}
