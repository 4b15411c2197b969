package api

import (
	"runtime"
	"testing"
	"weak"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

func TestSavedBundlesAreKeptAsLongAsTheirContextHasThem(t *testing.T) {
	d := NewDocuments(DocumentsOptions{})
	view := func(keys etcdKeys) appcontext.View {
		s := keys.snapshot(t)
		return appcontext.View{ContextID: autumnID, Context: s, StatusContext: s}
	}
	saved := func(v appcontext.View) map[string]weak.Pointer[status.Bundle] {
		contents, found := d.cacheOf(appcontext.DeploymentRef{}, v).decode(v), map[string]weak.Pointer[status.Bundle]{}
		for _, e := range contents.Expected(appcontext.GroupRef("retail", "shop", "v2", "autumn"), status.Query{}) {
			found[e.Cluster] = weak.Make(contents.SavedBundle(e.AppInCluster, nil))
		}
		return found
	}
	both := etcdKeys{}.put(autumnID, "web", "west+bonn", "web+Deployment", deployment, "Applied", savedWeb).
		put(autumnID, "web", "west+berlin", "web+Deployment", deployment, "Applied", savedWeb)
	first := saved(view(both))
	if len(first) != 2 || first["west+bonn"] == first["west+berlin"] {
		t.Fatalf("want a bundle of each cluster, got %v", first)
	}
	second := saved(view(etcdKeys{}.put(autumnID, "web", "west+bonn", "web+Deployment", deployment, "Applied", savedWeb)))
	if len(second) != 1 || second["west+bonn"] != first["west+bonn"] {
		t.Errorf("the bundle that has not changed was decoded twice: %v, then %v", first, second)
	}
	runtime.GC()
	if first["west+berlin"].Value() != nil {
		t.Error("the bundle of a cluster that is not in the context any more is kept")
	}
	if second["west+bonn"].Value() == nil {
		t.Error("the bundle of a cluster in the context is not kept")
	}
	runtime.KeepAlive(d)
}

func TestAnswersOfAViewAreBounded(t *testing.T) {
	d, view := &viewCache{}, appcontext.View{}
	third := response{body: make([]byte, maxCachedBytes/3)}
	for _, query := range []string{"a", "b", "b", "c", "d"} {
		d.store(view, query, third)
		if _, ok := d.document(view, query); !ok {
			t.Errorf("the answer to %q is not kept", query)
		}
	}
	d.store(view, "e", response{body: make([]byte, maxCachedBytes+1)})
	d.store(appcontext.View{Contexts: []string{autumnID}}, "f", third)
	if _, ok := d.document(view, "f"); ok {
		t.Error("an answer of another view is kept")
	}
	kept := 0
	for _, made := range d.documents {
		kept += len(made.body)
	}
	if kept == 0 || kept > maxCachedBytes || kept != d.size {
		t.Errorf("answers of %d bytes are kept, counted as %d; there may be %d", kept, d.size, maxCachedBytes)
	}
}
