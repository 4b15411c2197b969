package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/e2e/faults"
)

// clientOf starts an API server that knows one pod, and returns a proxy to it with a client.
func clientOf(t *testing.T) (*faults.Proxy, kubernetes.Interface) {
	t.Helper()
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","resourceVersion":"5"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("Authorization") != "Bearer let-me-in":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Query().Get("watch") != "":
			fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":%s}\n", pod)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, pod)
		}
	}))
	t.Cleanup(server.Close)
	p, err := faults.Start(&rest.Config{Host: server.URL, BearerToken: "let-me-in"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := p.Config()
	config.ContentType = "application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return p, client
}

// get reads the pod within a time.
func get(t *testing.T, client kubernetes.Interface, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, err := client.CoreV1().Pods("default").Get(ctx, "web", metav1.GetOptions{})
	return err
}

// open opens a watch and reads its first event.
func open(t *testing.T, client kubernetes.Interface) watch.Interface {
	t.Helper()
	w, err := client.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "4"})
	if err != nil {
		t.Fatal(err)
	}
	if e := next(t, w); e.Type != watch.Added {
		t.Fatalf("the first event is %v", e)
	}
	return w
}

// next returns the next event of a watch; the zero event when the watch has ended.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e := <-w.ResultChan():
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("no event after 10 seconds")
		return watch.Event{}
	}
}

const testTimeout = 10 * time.Second

func TestRequestsPassWithCredentialsAndAreCounted(t *testing.T) {
	p, client := clientOf(t)
	if err := get(t, client, testTimeout); err != nil {
		t.Fatal(err)
	}
	open(t, client).Stop()
	want := map[string]int{"GET /api/v1/namespaces/default/pods/web": 1, "WATCH /api/v1/namespaces/default/pods": 1}
	if got := fmt.Sprint(p.Requests()); got != fmt.Sprint(want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

func TestWatchesExpire(t *testing.T) {
	p, client := clientOf(t)
	w := open(t, client)
	p.ExpireWatches()
	if e := next(t, w); e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("got %v, want an event that says 410 Expired", e)
	}
	if e := next(t, w); e.Type != "" {
		t.Errorf("after that came %v, want the end", e)
	}
	if _, err := client.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"}); !apierrors.IsResourceExpired(err) {
		t.Errorf("continuing the watch says %v, want 410 Expired", err)
	}
	open(t, client).Stop()
}

func TestRefusal(t *testing.T) {
	p, client := clientOf(t)
	p.Refuse(func(r *http.Request) int {
		if r.Method == http.MethodGet {
			return http.StatusForbidden
		}
		return 0
	})
	if err := get(t, client, testTimeout); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want Forbidden", err)
	}
	p.Refuse(nil)
	if err := get(t, client, testTimeout); err != nil {
		t.Error(err)
	}
}

func TestDelay(t *testing.T) {
	p, client := clientOf(t)
	p.Delay(time.Hour)
	if err := get(t, client, 50*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want no answer", err)
	}
	p.Delay(0)
	if err := get(t, client, testTimeout); err != nil {
		t.Error(err)
	}
}

func TestCut(t *testing.T) {
	p, client := clientOf(t)
	w := open(t, client)
	p.Cut()
	if e := next(t, w); e.Type != "" && e.Type != watch.Error {
		t.Errorf("the watch went on with %v", e)
	}
	if err := get(t, client, time.Second); err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		t.Errorf("got %v, want a broken connection", err)
	}
	p.Mend()
	if err := get(t, client, testTimeout); err != nil {
		t.Error(err)
	}
}
