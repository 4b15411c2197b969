package appcontext_test

import (
	"errors"
	"testing"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

func FuzzSnapshot(f *testing.F) {
	f.Add("status/", []byte(`{"Status":"Instantiated"}`), "meta/", []byte(`{"Project":"p"}`))
	f.Add("app/a/", []byte(`"a"`), "app/instruction/order/", []byte(`"{\"apporder\":[\"a\",\"b\"]}"`))
	f.Add("app/a/cluster/p+c/", []byte(`"p+c"`), "app/a/cluster/p+c/status/", []byte(`"{}"`))
	f.Add("app/a/cluster/p+c/resource/r+K/", []byte(`"x"`), "app/a/cluster/p+c/resource/instruction/order/", []byte(`"{\"resorder\":[\"r+K\"]}"`))
	f.Add("app/instruction/", []byte(`"instruction"`), "app//", []byte(`""`))
	f.Add("app/", []byte(`"x"`), "app/a/cluster/", []byte(`"x"`))
	f.Add("statusappctxid/", []byte(`"5"`), "stopflag/", []byte(`maybe`))
	f.Fuzz(func(t *testing.T, key1 string, value1 []byte, key2 string, value2 []byte) {
		values := map[string][]byte{
			"/context/1/": []byte(`"1"`), "/context/1/app/a/": []byte(`"a"`), "/context/1/app/a/cluster/p+c/": []byte(`"p+c"`),
			"/context/1/" + key1: value1, "/context/1/" + key2: value2,
		}
		s, err := appcontext.NewSnapshot(1, values)
		if err != nil {
			t.Fatalf("all keys are of context 1: %v", err)
		}
		checkKeys(t, s, values)
		checkNames(t, s)
	})
}

// checkKeys fails the test if a snapshot has a key or a value that it was not created from.
func checkKeys(t *testing.T, s *appcontext.Snapshot, values map[string][]byte) {
	t.Helper()
	got := contents(s)
	for key, value := range got {
		if want, ok := values[key]; !ok || string(want) != value {
			t.Errorf("%q has become %q: %q", key, value, want)
		}
	}
	if _, err := s.Status(); err != nil && !errors.Is(err, appcontext.ErrMalformed) {
		t.Errorf("the status cannot be read for another reason than its form: %v", err)
	}
}

// checkNames fails the test if an object is not found by its name, or occurs twice.
func checkNames(t *testing.T, s *appcontext.Snapshot) {
	t.Helper()
	for _, app := range s.Apps() {
		if found, ok := s.App(app.Name()); !ok || found.Handle() != app.Handle() {
			t.Errorf("app %q is not found by its name", app.Name())
		}
		for _, cluster := range app.Clusters() {
			if found, ok := app.Cluster(cluster.Name()); !ok || found.Handle() != cluster.Handle() {
				t.Errorf("cluster %q is not found by its name", cluster.Name())
			}
			seen := map[string]bool{}
			for _, resource := range cluster.Resources() {
				if seen[resource.Name()] {
					t.Errorf("resource %q comes twice", resource.Name())
				}
				seen[resource.Name()] = true
				if found, ok := cluster.Resource(resource.Name()); !ok || found.Handle() != resource.Handle() {
					t.Errorf("resource %q is not found by its name", resource.Name())
				}
			}
		}
	}
}
