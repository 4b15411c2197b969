package support

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// collect writes an archive of a cluster whose API server is serve, and returns its files.
func collect(t *testing.T, serve http.HandlerFunc) map[string]string {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	var out bytes.Buffer
	_, err := Write(t.Context(), &out, Options{
		Config: &rest.Config{Host: server.URL}, Namespace: "healthscope-system", ClustersNamespace: "healthscope-clusters", Selector: "app=healthscope",
		ValidateConfiguration: func([]byte) error { return nil }, LogLines: 10, Now: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return readArchive(t, &out)
}

// The log of the previous instance says why a container was restarted. A container that was never restarted has none.
func TestLogsOfContainersAndTheirPreviousInstances(t *testing.T) {
	t.Parallel()
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "healthscope-system", Name: "controller-0"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "controller"}, {Name: "sidecar"}}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "controller", RestartCount: 2}, {Name: "sidecar"}}},
	}
	files := collect(t, func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case strings.HasSuffix(r.URL.Path, "/pods/controller-0/log"):
			fmt.Fprintf(w, "%s, previous: %v\n", query.Get("container"), query.Get("previous") == "true")
		case strings.HasSuffix(r.URL.Path, "/pods") && query.Get("labelSelector") == "app=healthscope":
			w.Header().Set("Content-Type", "application/json")
			list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{pod}}
			if err := json.NewEncoder(w).Encode(list); err != nil {
				t.Error(err)
			}
		default:
			http.NotFound(w, r)
		}
	})
	maps.DeleteFunc(files, func(name, _ string) bool { return !strings.HasPrefix(name, "logs/") })
	want := map[string]string{
		"logs/controller-0-controller.log":          "controller, previous: false\n",
		"logs/controller-0-controller-previous.log": "controller, previous: true\n",
		"logs/controller-0-sidecar.log":             "sidecar, previous: false\n",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An archive names everything that could not be read.
func TestErrorsNameWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	files := collect(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	for _, want := range []string{"the version of the API server: ", "logs and metrics of pods: ", "which Secrets of clusters there are: ", "leases.yaml: "} {
		if !strings.Contains("\n"+files["errors.txt"], "\n"+want) {
			t.Errorf("%q is not in the problems:\n%s", want, files["errors.txt"])
		}
	}
	if names := slices.Sorted(maps.Keys(files)); slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "logs/") }) {
		t.Errorf("there are logs of nothing: %v", names)
	}
}
