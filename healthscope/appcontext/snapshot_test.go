package appcontext_test

import (
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
	keys := []string{"a-b", "a", "b"} // This is etcd's order of "a-b/" and "a/".
	for name, tc := range map[string]struct {
		order string
		want  []string
	}{
		"none":                  {"", keys},
		"all":                   {`"{\"apporder\":[\"b\",\"a\",\"a-b\"]}"`, []string{"b", "a", "a-b"}},
		"some":                  {`"{\"apporder\":[\"b\"]}"`, []string{"b", "a-b", "a"}},
		"too many":              {`"{\"apporder\":[\"x\",\"a\",\"a\",\"instruction\"]}"`, []string{"a", "a-b", "b"}},
		"JSON that is no text":  {`{"apporder":["b"]}`, []string{"b", "a-b", "a"}},
		"the order of others":   {`"{\"order\":[\"b\"]}"`, keys},
		"not a list":            {`"{\"apporder\":\"b\"}"`, keys},
		"null":                  {`null`, keys},
		"broken":                {`"{`, keys},
		"broken inside":         {`"{"`, keys},
		"a number in the order": {`"{\"apporder\":[1]}"`, keys},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]string{"app/half/cluster/p+c/": `"p+c"`}
			for _, name := range keys {
				values["app/"+name+"/"] = `"name"`
				values["app/a/cluster/p+c/resource/"+name+"/"] = `"body"`
			}
			values["app/a/cluster/p+c/"] = `"p+c"`
			if tc.order != "" {
				values["app/instruction/order/"] = tc.order
				values["app/a/cluster/p+c/resource/instruction/order/"] = strings.ReplaceAll(tc.order, "apporder", "resorder")
			}
			s := snapshot(t, values)
			if got := names(s.Apps()); !slices.Equal(got, tc.want) {
				t.Errorf("apps: want %v, got %v", tc.want, got)
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
		"bare levels":  snapshot(t, map[string]string{"app/a/": `"a"`, "app/a/cluster/p+c/": `"p+c"`, "app/a/cluster/p+c/resource/r+K/": `""`}),
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{fmt.Sprintf(`context "": %+v`, appcontext.CompositeAppMeta{})}
			if name == "bare levels" {
				want = append(want, "app a: bundle 1-a", `cluster c of p: "" `, `K r: "" `)
			}
			if diff := cmp.Diff(want, summarize(t, s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if id := must(s.StatusContextID())(t); id != s.ID() {
				t.Errorf("want a context to be its own status context, got %q", id)
			}
			if must(s.StopFlag())(t) {
				t.Error("a context without a flag is stopped")
			}
			if x, ok := s.App("x"); ok || len(x.Clusters()) > 0 || s.StoredRevision(s.Handle().Level("x")) > 0 {
				t.Error("there is an app that is not there")
			}
		})
	}
}

func TestZeroClusterIsEmpty(t *testing.T) {
	if all := (appcontext.Cluster{}).Resources(); len(all) > 0 {
		t.Errorf("got %d resources", len(all))
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
		values := map[string]string{"app/a/": `"a"`, k: `"p+c"`, r: `"x"`}
		if err := read(snapshot(t, values)); err != nil {
			t.Errorf("%s: nothing is wrong yet: %v", key, err)
		}
		values[key] = `{"`
		wantError(t, read(snapshot(t, values)), appcontext.ErrMalformed, `"/context/1/`+key+`"`)
	}
}

func TestStatesAreReadInAnySpelling(t *testing.T) {
	for stored, want := range map[string]string{
		`{"Status":"Applied"}`:                   "Applied",
		`{"Status":""}`:                          "",
		`{}`:                                     "",
		` { "Status" : "Applied" } `:             "Applied",
		`{"Status":"Not yet"}`:                   "Not yet",
		`{"Status":"\u0041pplied"}`:              "Applied",
		`{"Status":"Hibernating","Time":"noon"}`: "Hibernating",
		`{"Status":"a","Status":"b"}`:            "b",
	} {
		if got := must(snapshot(t, map[string]string{"status/": stored}).Status())(t); string(got) != want {
			t.Errorf("%s: want %q, got %q", stored, want, got)
		}
	}
	for _, stored := range []string{`{"Status":"}`, `{"Status":"Applied"`, `"Applied"`, `{"Status":1}`, ``} {
		wantError(t, just(snapshot(t, map[string]string{"status/": stored}).Status()), appcontext.ErrMalformed)
	}
}

func TestOnlyNamesWithOnePlusSignAreSplit(t *testing.T) {
	for name, want := range map[string]bool{"west+bonn": true, "west": false, "+bonn": false, "west+": false, "a+b+c": false} {
		s := snapshot(t, map[string]string{"app/a/": `"a"`, "app/a/cluster/" + name + "/": `"x"`, "app/a/cluster/" + name + "/resource/" + name + "/": `"x"`})
		cluster := s.Apps()[0].Clusters()[0]
		_, _, isCluster := cluster.Split()
		_, _, isResource := cluster.Resources()[0].Split()
		if isCluster != want || isResource != want {
			t.Errorf("%q is split as a cluster %t and as a resource %t, want %t", name, isCluster, isResource, want)
		}
	}
}

func TestSnapshotsAreOfOneContext(t *testing.T) {
	_, err := appcontext.NewSnapshot(1, map[string][]byte{"/context/1/": []byte(`"1"`), "/context/10/": []byte(`"10"`)})
	wantError(t, err, appcontext.ErrInvalid, `"1"`, `"10"`)
	s := must(appcontext.NewSnapshot(1, map[string][]byte{"/context/1/": []byte(`"1"`), "/context//x/": nil, "/context/2/a": nil, "/other/": nil, "/context/3//a/": nil}))(t)
	if s.ID() != "1" || len(contents(s)) != 1 {
		t.Errorf("want one key of context 1, got %d of %q", len(contents(s)), s.ID())
	}
}
