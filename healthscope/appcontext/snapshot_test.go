package appcontext_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// snapshot returns a snapshot of context 1. The keys of values are relative to the context.
func snapshot(t testing.TB, values map[string]string) *appcontext.Snapshot {
	t.Helper()
	keys := map[string][]byte{}
	for key, value := range values {
		keys["/context/1/"+key] = []byte(value)
	}
	return must(appcontext.NewSnapshot(7, keys))(t)
}

func names[T interface{ Name() string }](all []T) []string {
	var found []string
	for _, one := range all {
		found = append(found, one.Name())
	}
	return found
}

func TestOrderOfAppsAndResources(t *testing.T) {
	cases := map[string]struct {
		order string
		want  []string
	}{
		"none":                  {"", []string{"a-b", "a", "b"}}, // This is etcd's order of "a-b/" and "a/".
		"all":                   {`"{\"apporder\":[\"b\",\"a\",\"a-b\"]}"`, []string{"b", "a", "a-b"}},
		"some":                  {`"{\"apporder\":[\"b\"]}"`, []string{"b", "a-b", "a"}},
		"too many":              {`"{\"apporder\":[\"x\",\"a\",\"a\",\"instruction\"]}"`, []string{"a", "a-b", "b"}},
		"JSON that is no text":  {`{"apporder":["b"]}`, []string{"b", "a-b", "a"}},
		"the order of others":   {`"{\"resorder\":[\"b\"]}"`, []string{"a-b", "a", "b"}},
		"not a list":            {`"{\"apporder\":\"b\"}"`, []string{"a-b", "a", "b"}},
		"null":                  {`null`, []string{"a-b", "a", "b"}},
		"broken":                {`"{`, []string{"a-b", "a", "b"}},
		"broken inside":         {`"{"`, []string{"a-b", "a", "b"}},
		"a number in the order": {`"{\"apporder\":[1]}"`, []string{"a-b", "a", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			values := map[string]string{"": `"1"`, "app/a/": `"a"`, "app/a-b/": `"a-b"`, "app/b/": `"b"`, "app/half/cluster/p+c/": `"p+c"`}
			order := strings.ReplaceAll(tc.order, "apporder", "resorder")
			for _, app := range []string{"a", "b"} {
				values["app/"+app+"/cluster/p+c/"] = `"p+c"`
				for _, resource := range []string{"a", "b", "a-b"} {
					values["app/"+app+"/cluster/p+c/resource/"+resource+"/"] = `"body"`
				}
				if tc.order != "" {
					values["app/"+app+"/cluster/p+c/resource/instruction/order/"] = order
				}
			}
			if tc.order != "" {
				values["app/instruction/order/"] = tc.order
			}
			s := snapshot(t, values)
			if got := names(s.Apps()); !slices.Equal(got, tc.want) {
				t.Errorf("apps: want %v, got %v", tc.want, got)
			}
			if strings.Contains(tc.order, "resorder") {
				return
			}
			app, _ := s.App("a")
			cluster, _ := app.Cluster("p+c")
			if got := names(cluster.Resources()); !slices.Equal(got, tc.want) {
				t.Errorf("resources: want %v, got %v", tc.want, got)
			}
		})
	}
}

func TestMissingValuesReadAsZero(t *testing.T) {
	for name, s := range map[string]*appcontext.Snapshot{
		"no keys":      must(appcontext.NewSnapshot(1, nil))(t),
		"only context": snapshot(t, map[string]string{"": `"1"`}),
		"only remains": snapshot(t, map[string]string{"app/a/cluster/p+c/": `"p+c"`}),
		"bare levels":  snapshot(t, map[string]string{"": `"1"`, "app/a/": `"a"`, "app/a/cluster/p+c/": `"p+c"`, "app/a/cluster/p+c/resource/r+K/": `""`}),
	} {
		t.Run(name, func(t *testing.T) {
			sum := summarize(t, s)
			sum.Apps = nil
			if diff := cmp.Diff(summary{}, sum); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if id := must(s.StatusContextID())(t); id != s.ID() {
				t.Errorf("want a context to be its own status context, got %q", id)
			}
			if _, ok := s.App("x"); ok {
				t.Error("there is an app that is not there")
			}
		})
	}
}

func TestDecodeErrorsNameTheKey(t *testing.T) {
	const k = "app/a/cluster/p+c/"
	const r = k + "resource/r+Kind/"
	cluster := func(s *appcontext.Snapshot) appcontext.Cluster { return s.Apps()[0].Clusters()[0] }
	resource := func(s *appcontext.Snapshot) appcontext.Resource { return cluster(s).Resources()[0] }
	for key, read := range map[string]func(*appcontext.Snapshot) error{
		"meta/":                           func(s *appcontext.Snapshot) error { return just(s.Meta()) },
		"status/":                         func(s *appcontext.Snapshot) error { return just(s.Status()) },
		"stopflag/":                       func(s *appcontext.Snapshot) error { return just(s.StopFlag()) },
		"statusappctxid/":                 func(s *appcontext.Snapshot) error { return just(s.StatusContextID()) },
		"app/instruction/order/":          func(s *appcontext.Snapshot) error { return just(s.AppOrder()) },
		k + "readystatus/":                func(s *appcontext.Snapshot) error { return just(cluster(s).Connectivity()) },
		k + "status/":                     func(s *appcontext.Snapshot) error { return just(cluster(s).Bundle()) },
		k + "resource/instruction/order/": func(s *appcontext.Snapshot) error { return just(cluster(s).ResourceOrder()) },
		r:                                 func(s *appcontext.Snapshot) error { return just(resource(s).Body()) },
		r + "reference/":                  func(s *appcontext.Snapshot) error { return just(resource(s).Reference()) },
		r + "status/":                     func(s *appcontext.Snapshot) error { return just(resource(s).Status()) },
	} {
		values := map[string]string{"": `"1"`, "app/a/": `"a"`, k: `"p+c"`, r: `"x"`}
		if err := read(snapshot(t, values)); err != nil {
			t.Errorf("%s: nothing is wrong yet: %v", key, err)
		}
		values[key] = `{"`
		if err := read(snapshot(t, values)); !errors.Is(err, appcontext.ErrMalformed) || !strings.Contains(err.Error(), `"/context/1/`+key+`"`) {
			t.Errorf("%s is broken, and the error is: %v", key, err)
		}
	}
}

func TestUnknownWordsSurvive(t *testing.T) {
	s := snapshot(t, map[string]string{
		"": `"1"`, "status/": `{"Status":"Hibernating","Since":"noon"}`, "app/a/": `"a"`, "app/a/cluster/x/": `"x"`, "app/a/cluster/x/readystatus/": `"Sometimes"`,
		"app/a/cluster/x/resource/r/": `"nil"`, "app/a/cluster/x/resource/r/status/": `{"Status":"Thawed"}`,
	})
	cluster := s.Apps()[0].Clusters()[0]
	resource := cluster.Resources()[0]
	got := []string{string(must(s.Status())(t)), string(must(cluster.Connectivity())(t)), string(must(resource.Status())(t)), must(resource.Body())(t)}
	if diff := cmp.Diff([]string{"Hibernating", "Sometimes", "Thawed", "nil"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, _, ok := cluster.Split(); ok {
		t.Error("a name without plus sign has no provider")
	}
	if _, _, ok := resource.Split(); ok {
		t.Error("a name without plus sign has no kind")
	}
}

func TestStatesAreReadInAnySpelling(t *testing.T) {
	for stored, want := range map[string]string{
		`{"Status":"Applied"}`:               "Applied",
		`{"Status":""}`:                      "",
		`{}`:                                 "",
		` { "Status" : "Applied" } `:         "Applied",
		`{"Status":"Not yet"}`:               "Not yet",
		`{"Status":"\u0041pplied"}`:          "Applied",
		`{"Status":"Applied","Time":"noon"}`: "Applied",
		`{"Status":"a","Status":"b"}`:        "b",
	} {
		if got := must(snapshot(t, map[string]string{"status/": stored}).Status())(t); string(got) != want {
			t.Errorf("%s: want %q, got %q", stored, want, got)
		}
	}
	for _, stored := range []string{`{"Status":"}`, `{"Status":"Applied"`, `"Applied"`, `{"Status":1}`, ``} {
		if got, err := snapshot(t, map[string]string{"status/": stored}).Status(); !errors.Is(err, appcontext.ErrMalformed) {
			t.Errorf("%s: want ErrMalformed, got %q, %v", stored, got, err)
		}
	}
}

func TestSnapshotsAreOfOneContext(t *testing.T) {
	_, err := appcontext.NewSnapshot(1, map[string][]byte{"/context/1/": []byte(`"1"`), "/context/10/": []byte(`"10"`)})
	if !errors.Is(err, appcontext.ErrInvalid) || !strings.Contains(err.Error(), `"10"`) {
		t.Errorf("want ErrInvalid naming both, got: %v", err)
	}
	s := must(appcontext.NewSnapshot(1, map[string][]byte{"/context/1/": []byte(`"1"`), "/context//x/": nil, "/context/2/a": nil, "/other/": nil, "/context/3//a/": nil}))(t)
	if s.ID() != "1" || len(contents(s)) != 1 {
		t.Errorf("want one key of context 1, got %d of %q", len(contents(s)), s.ID())
	}
}

func TestRevisionsNameValues(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	_, c, r := add(t, ac, h, "a", "p+c", "r+Kind")
	noError(t, set(t.Context(), store, c, map[string]any{"status": "{}"}))
	before := must(store.Snapshot(t.Context(), ac.ID()))(t)
	noError(t, ac.UpdateResourceValue(t.Context(), r, "other"))
	after := must(store.Snapshot(t.Context(), ac.ID()))(t)
	revisions := func(s *appcontext.Snapshot) (bundle, resource int64) {
		app, _ := s.App("a")
		cluster, _ := app.Cluster("p+c")
		object, _ := cluster.Resource("r+Kind")
		return cluster.Revision("status"), object.Revision()
	}
	bundle, resource := revisions(before)
	sameBundle, nextResource := revisions(after)
	if bundle == 0 || bundle != sameBundle {
		t.Errorf("the bundle that did not change has revision %d, then %d", bundle, sameBundle)
	}
	if resource == 0 || nextResource <= resource || nextResource > after.Revision() {
		t.Errorf("the resource that changed has revision %d, then %d", resource, nextResource)
	}
}

func ExampleNewSnapshot() {
	s, err := appcontext.NewSnapshot(42, map[string][]byte{
		"/context/77/":                                                  []byte(`"77"`),
		"/context/77/status/":                                           []byte(`{"Status":"Instantiated"}`),
		"/context/77/app/sink/":                                         []byte(`"sink"`),
		"/context/77/app/sink/cluster/west+bonn/":                       []byte(`"west+bonn"`),
		"/context/77/app/sink/cluster/west+bonn/resource/s+Pod/":        []byte(`"kind: Pod"`),
		"/context/77/app/sink/cluster/west+bonn/resource/s+Pod/status/": []byte(`{"Status":"Applied"}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := s.Status()
	fmt.Println(s.ID(), state, err)
	for _, app := range s.Apps() {
		for _, cluster := range app.Clusters() {
			for _, resource := range cluster.Resources() {
				status, err := resource.Status()
				fmt.Println(app.Name(), cluster.Name(), resource.Name(), status, err)
			}
		}
	}
	// Output:
	// 77 Instantiated <nil>
	// sink west+bonn s+Pod Applied <nil>
}
