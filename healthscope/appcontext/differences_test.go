package appcontext_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// difference is a case in which EMCO's library behaves in another way, or in which readers may expect this.
type difference struct {
	// emco is the behavior of EMCO's library, in the words of the page.
	emco string
	// ours returns the result of this library: a text, an error, or a list. The fixture has a second cluster without resources too, and
	// an app "b" without clusters.
	ours func(t *testing.T, f *fixture) (any, error)
	want any
	err  error
}

var differences = map[string]difference{
	"`AddInstruction`, `UpdateInstructionValue`: a value that is no string": {
		emco: "Stored as it is, and the getters fail on it.",
		ours: func(t *testing.T, f *fixture) (any, error) {
			at := must(f.ac.AddInstruction(t.Context(), f.c, "resource", "order", map[string][]string{"resorder": {"r+Kind"}}))(t)
			added := raw(t, f.client, string(at))[string(at)]
			err := f.ac.UpdateInstructionValue(t.Context(), at, map[string][]string{"resorder": {}})
			return added + raw(t, f.client, string(at))[string(at)], err
		},
		want: `"{\"resorder\":[\"r+Kind\"]}"` + `"{\"resorder\":[]}"`,
	},
	"`GetAppInstruction`, `GetResourceInstruction`, `GetAppLevelInstruction`: the stored value is no string": {
		emco: "An error.",
		ours: func(t *testing.T, f *fixture) (any, error) {
			putRaw(t, f.client, map[string]string{string(f.h) + "app/instruction/order/": `{"apporder":["a"]}`})
			return f.ac.GetAppInstruction(t.Context(), "order")
		},
		want: `{"apporder":["a"]}`,
	},
	"`GetAppLevelInstruction`": {
		emco: "Not in the first generation. Nothing but `AddLevelValue` with the level `instruction/dependency` writes what it reads.",
		ours: func(t *testing.T, f *fixture) (any, error) {
			must(f.ac.AddLevelValue(t.Context(), f.a, "instruction/dependency", `[{"app":"db"}]`))(t)
			return f.ac.GetAppLevelInstruction(t.Context(), "a", "dependency")
		},
		want: `[{"app":"db"}]`,
	},
	"`AddLevelValue`: the value is `\"\"`": {
		emco: "An error.",
		ours: func(t *testing.T, f *fixture) (any, error) { return f.ac.AddLevelValue(t.Context(), f.c, "x", "") },
		err:  appcontext.ErrInvalid,
	},
	"`AddClusterMetaGrp`: the cluster is in a group": {
		emco: "The number is replaced.",
		ours: func(t *testing.T, f *fixture) (any, error) {
			noError(t, f.ac.AddClusterMetaGrp(t.Context(), f.c, "1"))
			return nil, f.ac.AddClusterMetaGrp(t.Context(), f.c, "2")
		},
		err: appcontext.ErrExists,
	},
	"`GetClusterGroupMap`: no cluster is in a group": {
		emco: "An error.",
		ours: func(t *testing.T, f *fixture) (any, error) {
			groups, err := f.ac.GetClusterGroupMap(t.Context(), "a")
			return len(groups), err
		},
		want: 0,
	},
	"`GetResourceNames`: the cluster has no resources": {
		emco: "An error.",
		ours: func(t *testing.T, f *fixture) (any, error) {
			must(f.ac.AddLevelValue(t.Context(), f.h, "app/b/cluster", "no cluster"))(t)
			clusters := must(f.ac.GetClusterNames(t.Context(), "b"))(t)
			names, err := f.ac.GetResourceNames(t.Context(), "a", "p+empty")
			return len(clusters) + len(names), err
		},
		want: 0,
	},
	"`DeleteApp`, `DeleteCluster`, `DeleteInstruction`: a second time": {
		emco: "No error.",
		ours: func(t *testing.T, f *fixture) (any, error) {
			at := must(f.ac.AddInstruction(t.Context(), f.c, "resource", "order", "{}"))(t)
			var errs []error
			for range 2 {
				errs = append(errs, f.ac.DeleteInstruction(t.Context(), at), f.ac.DeleteCluster(t.Context(), f.c), f.ac.DeleteApp(t.Context(), f.a))
			}
			return nil, errors.Join(errs...)
		},
	},
	"`GetCompositeAppMeta`: fields that the stored meta data do not have": {
		emco: "The text `<nil>`.",
		ours: func(t *testing.T, f *fixture) (any, error) {
			putRaw(t, f.client, map[string]string{string(f.h) + "meta/": `{"Project":"p"}`})
			meta, err := f.ac.GetCompositeAppMeta(t.Context())
			return meta.Project + "," + meta.Version, err
		},
		want: "p,",
	},
	"any method: a handle that does not end with `/`": {
		emco: "The name is stuck to the last part.",
		ours: func(t *testing.T, f *fixture) (any, error) {
			return f.ac.AddApp(t.Context(), appcontext.Handle(strings.TrimSuffix(string(f.h), "/")), "x")
		},
		err: appcontext.ErrInvalid,
	},
}

// TestDifferencesFromEMCO asserts that the page describes each method correctly.
func TestDifferencesFromEMCO(t *testing.T) {
	page := map[string]string{}
	for _, row := range table(t, "method and case") {
		page[row[0]] = row[1]
	}
	if want, got := slices.Sorted(maps.Keys(differences)), slices.Sorted(maps.Keys(page)); !slices.Equal(want, got) {
		t.Errorf("the page has rows %q, want %q", got, want)
	}
	for name, d := range differences {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, appcontext.Options{})
			must(f.ac.AddCluster(t.Context(), f.a, "p+empty"))(t)
			must(f.ac.AddApp(t.Context(), f.h, "b"))(t)
			got, err := d.ours(t, f)
			if !errors.Is(err, d.err) || err == nil && got != d.want {
				t.Errorf("got %v and error %v, want %v and %v", got, err, d.want, d.err)
			}
			if page[name] != d.emco {
				t.Errorf("the page says that EMCO does %q, want %q", page[name], d.emco)
			}
		})
	}
}
