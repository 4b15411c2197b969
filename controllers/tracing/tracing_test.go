package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/healthscope/healthscope/controllers/tracing"
	"github.com/healthscope/healthscope/e2e/collector"
)

// logBuffer is a log that several goroutines write.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logBuffer) logger() logr.Logger { return logr.FromSlogHandler(slog.NewTextHandler(l, nil)) }

// startProvider returns a provider that sends to an endpoint.
func startProvider(t *testing.T, endpoint string, percent int32, log *logBuffer) *tracing.Provider {
	t.Helper()
	p, err := tracing.Start(t.Context(), tracing.Options{Endpoint: endpoint, SamplingPercent: percent, Service: "healthscope-test", Version: "v1.2.3", Cluster: "hub", Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// collect returns a provider that sends to a collector, whose URL has a path.
func collect(t *testing.T, path string, percent int32) (*collector.Collector, *tracing.Provider) {
	t.Helper()
	received := &collector.Collector{}
	sink := httptest.NewServer(received)
	t.Cleanup(sink.Close)
	return received, startProvider(t, sink.URL+path, percent, &logBuffer{})
}

// idle is a reconciler that does nothing.
var idle = reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil })

// request is the request of the tests' reconcilers.
var request = ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}

// sendRequest sends a request to A&AI whose credentials and body must be in no span.
func sendRequest(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, url+"/aai/v32/x?resource-version=7", strings.NewReader("canary body of the request"))
	if err != nil {
		return err
	}
	request.SetBasicAuth("canary-user", "canary-password")
	request.Header.Set("X-TransactionId", "transaction-1")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func TestReconcilerCreatesSpansForReconcilesAndRequests(t *testing.T) {
	received, p := collect(t, "/", 100)
	parents := make(chan string, 2)
	aai := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parents <- r.Header.Get("traceparent")
		w.WriteHeader(http.StatusPreconditionFailed)
		fmt.Fprint(w, "canary body of the answer")
	}))
	t.Cleanup(aai.Close)
	client := &http.Client{Transport: tracing.Transport(p, http.DefaultTransport)}
	r := tracing.Reconciler(p, "inventory", tracing.Object, reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{RequeueAfter: time.Minute}, errors.Join(sendRequest(ctx, client, aai.URL), sendRequest(ctx, client, aai.URL))
	}))
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != time.Minute {
		t.Fatalf("the reconciler's answer is changed: %v, %v", result, err)
	}
	p.Stop(t.Context())

	roots, children := received.Spans("reconcile inventory"), received.Spans("A&AI PATCH")
	if len(roots) != 1 || len(children) != 2 {
		t.Fatalf("%d spans of reconciles, %d of requests", len(roots), len(children))
	}
	root := roots[0]
	expect(t, root.Attributes, map[string]string{"healthscope.controller": "inventory", "k8s.namespace.name": "shop", "healthscope.name": "web", "healthscope.outcome": "requeue_after"})
	expect(t, root.Resource, map[string]string{"service.name": "healthscope-test", "service.version": "v1.2.3", "k8s.cluster.name": "hub"})
	if root.Parent != "" || root.Failed {
		t.Errorf("the span of the reconcile has parent %q, failed %t", root.Parent, root.Failed)
	}
	for _, child := range children {
		if child.Trace != root.Trace || child.Parent != root.ID {
			t.Errorf("a request is not below the reconcile: %+v", child)
		}
		if got, want := <-parents, "00-"+child.Trace+"-"+child.ID+"-01"; got != want {
			t.Errorf("A&AI is told %q, want %q", got, want)
		}
		expect(t, child.Attributes, map[string]string{"healthscope.aai.transaction_id": "transaction-1", "http.request.method": "PATCH", "http.response.status_code": "412"})
	}
	if all := fmt.Sprint(received.Spans("")); strings.Contains(all, "canary") {
		t.Errorf("credentials or bodies are in %s", all)
	}
}

// expect compares some attributes.
func expect(t *testing.T, got, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %q, want %q", key, got[key], value)
		}
	}
}

func TestReconcilerRecordsOutcomes(t *testing.T) {
	received, p := collect(t, "", 100)
	cases := map[string]struct {
		next func(ctx context.Context) (ctrl.Result, error)
		want string
	}{
		"good":  {func(context.Context) (ctrl.Result, error) { return ctrl.Result{}, nil }, "success"},
		"again": {func(context.Context) (ctrl.Result, error) { return ctrl.Result{RequeueAfter: 1}, nil }, "requeue_after"},
		"bad":   {func(context.Context) (ctrl.Result, error) { return ctrl.Result{}, errors.New("canary") }, "error"},
		"silent": {func(ctx context.Context) (ctrl.Result, error) {
			tracing.MarkFailed(ctx)
			return ctrl.Result{RequeueAfter: 1}, nil
		}, "error"},
	}
	for name, c := range cases {
		r := tracing.Reconciler(p, name, tracing.Object, reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) { return c.next(ctx) }))
		wantResult, wantErr := c.next(t.Context())
		if result, err := r.Reconcile(t.Context(), request); result != wantResult || (err == nil) != (wantErr == nil) {
			t.Errorf("%s: the reconciler's answer is changed: %v, %v", name, result, err)
		}
	}
	p.Stop(t.Context())
	for name, c := range cases {
		spans := received.Spans("reconcile " + name)
		if len(spans) != 1 || spans[0].Attributes["healthscope.outcome"] != c.want || spans[0].Failed != (c.want == "error") {
			t.Errorf("%s: got %+v, want outcome %s", name, spans, c.want)
		}
	}
	if all := fmt.Sprint(received.Spans("")); strings.Contains(all, "canary") {
		t.Errorf("an error's text is in %s", all)
	}
}

func TestNoSpansAreSentWithoutSampling(t *testing.T) {
	received, p := collect(t, "", 0)
	calls := 0
	r := tracing.Reconciler(p, "x", tracing.Object, reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { calls++; return ctrl.Result{}, nil }))
	for range 100 {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	p.Stop(t.Context())
	if calls != 100 || received.Requests() != 0 {
		t.Errorf("%d calls, %d batches", calls, received.Requests())
	}
}

// idleReconciler is a reconciler that does nothing.
type idleReconciler struct{ reconcile.Reconciler }

func TestNilProviderWrapsNothing(t *testing.T) {
	if tracing.Transport(nil, http.DefaultTransport) != http.DefaultTransport {
		t.Error("the transport is wrapped")
	}
	var r reconcile.Reconciler = &idleReconciler{}
	if tracing.Reconciler(nil, "x", tracing.Object, r) != r {
		t.Error("the reconciler is wrapped")
	}
	tracing.MarkFailed(t.Context()) // Reconcilers call it without tracing, too.
}

// TestUnreachableCollectorIsLoggedOnce checks that reconciles continue, that one log line reports the outage, and another its end.
func TestUnreachableCollectorIsLoggedOnce(t *testing.T) {
	received := &collector.Collector{}
	var unreachable bool
	var mu sync.Mutex
	setUnreachable := func(to bool) { mu.Lock(); unreachable = to; mu.Unlock() }
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		refuse := unreachable
		mu.Unlock()
		if refuse {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		received.ServeHTTP(w, r)
	}))
	t.Cleanup(sink.Close)
	var log logBuffer
	p := startProvider(t, sink.URL, 100, &log)
	r := tracing.Reconciler(p, "x", tracing.Object, idle)
	work := func(n int) {
		t.Helper()
		for range n {
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if err := p.ForceFlush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	setUnreachable(true)
	work(3)
	setUnreachable(false)
	work(2)
	setUnreachable(true)
	work(2)
	p.Stop(t.Context())
	if n := strings.Count(log.String(), "Cannot send traces"); n != 2 {
		t.Errorf("it is logged %d times that the collector is away, which it was twice:\n%s", n, &log)
	}
	if n := strings.Count(log.String(), "Traces are sent again"); n != 1 {
		t.Errorf("it is logged %d times that it is back:\n%s", n, &log)
	}
	if n := len(received.Spans("")); n != 2 {
		t.Errorf("%d spans have arrived, want those of the time when it was there", n)
	}
}

// TestHangingCollectorBlocksNothing checks that a collector that hangs delays neither reconciles nor Stop.
func TestHangingCollectorBlocksNothing(t *testing.T) {
	release := make(chan struct{})
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(sink.Close)
	t.Cleanup(func() { close(release) })
	p := startProvider(t, sink.URL, 100, &logBuffer{})
	r := tracing.Reconciler(p, "x", tracing.Object, idle)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20_000 { // More than the queue takes.
			_, _ = r.Reconcile(t.Context(), request)
		}
		p.Stop(t.Context())
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it is held up")
	}
}
