package dynamicclient

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// resource returns a resource of an API server that answers every request with this.
func resource(t *testing.T, code int, answer string) dynamic.ResourceInterface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	client, err := New(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "things"})
}

// client-go takes such an object for metav1.Status, whatever its group, and loses what is in it: the decoders are in use.
func TestAKindNamedStatusIsAnObject(t *testing.T) {
	things := resource(t, http.StatusOK, `{"type":"ADDED","object":{"apiVersion":"example.org/v1","kind":"Status","metadata":{"name":"a"}}}`)
	events, err := things.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	want := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Status", "metadata": map[string]any{"name": "a"}}}
	if got := <-events.ResultChan(); !reflect.DeepEqual(got.Object, want) {
		t.Errorf("got %+v; want the object %v", got, want)
	}
}

func TestErrorsAreThoseOfTheAPIServer(t *testing.T) {
	cases := map[string]struct {
		code   int
		answer string
		is     func(error) bool
	}{
		"forbidden":           {403, `{"apiVersion":"v1","kind":"Status","status":"Failure","message":"no thing for you","reason":"Forbidden","code":403}`, apierrors.IsForbidden},
		"expired":             {410, `{"apiVersion":"v1","kind":"Status","status":"Failure","message":"no thing for you","reason":"Expired","code":410}`, apierrors.IsResourceExpired},
		"without a version":   {410, `{"kind":"Status","status":"Failure","message":"no thing for you","reason":"Expired","code":410}`, apierrors.IsResourceExpired},
		"of an older version": {410, `{"apiVersion":"meta.k8s.io/v1","kind":"Status","status":"Failure","message":"no thing for you","reason":"Expired","code":410}`, apierrors.IsResourceExpired},
		"not now":             {429, `{"apiVersion":"v1","kind":"Status","status":"Failure","message":"no thing for you","reason":"TooManyRequests","code":429}`, apierrors.IsTooManyRequests},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			things := resource(t, c.code, c.answer)
			requests := map[string]func() error{
				"list": func() error { _, err := things.List(t.Context(), metav1.ListOptions{}); return err },
				"watch": func() error {
					events, err := things.Watch(t.Context(), metav1.ListOptions{})
					if err == nil {
						events.Stop()
					}
					return err
				},
			}
			for verb, request := range requests {
				if err := request(); !c.is(err) || err.Error() != "no thing for you" {
					t.Errorf("%s: got the error %v, %#v", verb, err, err)
				}
			}
		})
	}
}

func TestListsAreRead(t *testing.T) {
	things := resource(t, http.StatusOK, `{"apiVersion":"example.org/v1","kind":"ThingList","metadata":{"resourceVersion":"5"},"items":[{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"n":3}}]}`)
	list, err := things.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []unstructured.Unstructured{{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"n": int64(3)}}}}
	if list.GetResourceVersion() != "5" || !reflect.DeepEqual(list.Items, want) {
		t.Errorf("got version %q and %v; want version 5 and %v", list.GetResourceVersion(), list.Items, want)
	}
}
