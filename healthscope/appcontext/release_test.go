package appcontext_test

import (
	"testing"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// TestAContextWithoutAGroupIsFoundByItsRelease reads meta data of the first generation. They have four fields, and none for the
// group.
func TestAContextWithoutAGroupIsFoundByItsRelease(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	client := rawClient(t, etcd.Endpoint())
	for key, value := range map[string]string{
		"/context/77/":      `"77"`,
		"/context/77/meta/": `{"Project":"retail","CompositeApp":"shop","Version":"v2","Release":"r1"}`,
		"/context/78/":      `"78"`,
		"/context/78/meta/": `{"Project":"retail","CompositeApp":"shop","Version":"v2","Release":"r1","DeploymentIntentGroup":"autumn"}`,
	} {
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	cache := runCache(t, store, appcontext.CacheOptions{})
	for group, want := range map[string]string{"r1": "77", "autumn": "78", "winter": ""} {
		subject := appcontext.GroupRef("retail", "shop", "v2", group)
		if got := must(store.View(t.Context(), subject, ""))(t).ContextID; got != want {
			t.Errorf("the store finds context %q of group %q, want %q", got, group, want)
		}
		if got := must(cache.View(t.Context(), subject, ""))(t).ContextID; got != want {
			t.Errorf("the cache finds context %q of group %q, want %q", got, group, want)
		}
	}
	ac := appcontext.NewAppContext(store)
	ac.InitAppContext()
	must(ac.CreateCompositeApp(t.Context()))(t)
	noError(t, ac.AddCompositeAppMeta(t.Context(), appcontext.CompositeAppMeta{Project: "retail", CompositeApp: "shop", Version: "v2", Release: "r9"}))
	if got := must(store.View(t.Context(), appcontext.GroupRef("retail", "shop", "v2", "r9"), ""))(t).ContextID; got != ac.ID() {
		t.Errorf("context %q is found, want %q", got, ac.ID())
	}
}
