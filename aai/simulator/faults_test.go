package simulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// serve runs the simulator on a loopback port and returns a client for it, which answers the status.
func (h *harness) serve() func(c call) (int, error) {
	h.t.Helper()
	server := httptest.NewServer(h)
	h.t.Cleanup(server.Close)
	return func(c call) (int, error) {
		template := c.request(h.t)
		r, err := http.NewRequestWithContext(h.t.Context(), template.Method, server.URL+template.RequestURI, strings.NewReader(c.body))
		if err != nil {
			return 0, err
		}
		r.Header = template.Header
		response, err := server.Client().Do(r)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		return response.StatusCode, errors.Join(err, response.Body.Close())
	}
}

func TestFaultsHitWhatTheyMatchAsOftenAsTheySay(t *testing.T) {
	h := newHarness(t, Options{})
	if err := h.AddFaults(
		Fault{Method: "PUT", PathPrefix: "/aai/v32/cloud-infrastructure", Count: 2, Status: 503},
		Fault{Method: "PUT", Status: 500},
	); err != nil {
		t.Fatal(err)
	}
	calls := []call{put1(pod, podBody), {path: vnf}, put1(vnf, "{}"), put1(pod, podBody), put1(pod, podBody), put1(pod, podBody)}
	got := make([]int, len(calls))
	for i, c := range calls {
		got[i] = h.send(c).status
	}
	diff(t, "statuses", []int{503, 200, 500, 503, 500, 500}, got)
	h.ClearFaults()
	diff(t, "afterwards", 201, h.send(put1(pod, podBody)).status)
	diff(t, "in the journal", 503, h.Requests()[0].Status)
}

func TestDroppedConnections(t *testing.T) {
	for drop, applied := range map[Drop]bool{DropBeforeCommit: false, DropAfterCommit: true} {
		t.Run(string(drop), func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			h := newHarness(t, Options{})
			server := httptest.NewServer(h)
			defer server.Close()
			if err := h.AddFaults(Fault{Method: "PUT", Count: 1, Drop: drop}); err != nil {
				t.Fatal(err)
			}
			r := put1(pod, podBody).request(h.t)
			r, err := http.NewRequestWithContext(t.Context(), r.Method, server.URL+r.RequestURI, strings.NewReader(podBody))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = put1(pod, podBody).request(h.t).Header
			if response, err := server.Client().Do(r); err == nil {
				_ = response.Body.Close()
				t.Fatalf("got status %d, want a closed connection", response.StatusCode)
			}
			_, exists := h.Get(pod)
			diff(t, "node exists", applied, exists)
			diff(t, "status in the journal", 0, h.Requests()[0].Status)
		})
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		if err := h.AddFaults(Fault{Delay: time.Minute, Count: 1}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		diff(t, "status", 200, h.send(call{path: vnf}).status)
		diff(t, "time taken", time.Minute, time.Since(start))
	})
}

func TestDelayEndsWhenTheClientGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		if err := h.AddFaults(Fault{Delay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		defer func() {
			if reason := recover(); reason != http.ErrAbortHandler { //nolint:errorlint // a panic value, never wrapped
				t.Errorf("handler ended with %v, want it aborted", reason)
			}
			diff(t, "time taken", time.Second, time.Since(start))
			_, exists := h.Get(pod)
			diff(t, "node exists", false, exists)
		}()
		h.ServeHTTP(httptest.NewRecorder(), put1(pod, podBody).request(h.t).WithContext(ctx))
	})
}

func TestBodiesThatAreTooLargeAreRefused(t *testing.T) {
	h := newHarness(t, Options{})
	diff(t, "status", 400, h.send(put1(pod, strings.Repeat(" ", maxBody+1))).status)
}

// Many clients at once: every create, edge and bulk either happens wholly or not at all. Run it with -race.
func TestConcurrentClients(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("clients", func(t *testing.T) {
		h := newHarness(t, Options{Strict: true})
		send := h.serve()
		var clients sync.WaitGroup
		for client := range 8 {
			clients.Go(func() { h.churn(send, client) })
		}
		clients.Wait()
		checkInvariants(t, h.graph)
		diff(t, "k8s-resources", 8*10, len(h.List(resources)))
		diff(t, "edges of the VNF", 8*10, len(links(h, vnf)))
		diff(t, "violations", []Violation{}, h.Violations())
	})
}

// churn creates resources with edges in one bulk request each and reads the list in between.
func (h *harness) churn(send func(call) (int, error), client int) {
	for i := range 10 {
		uri := fmt.Sprintf("%s/k8s-resource/c%d-%d", resources, client, i)
		create := bulk1(operations(op("put", uri, podBody), op("put", uri+relationshipPath, `{"related-link":"`+vnf+`"}`)))
		create.header = map[string]string{"X-TransactionId": uri}
		if status, err := send(create); err != nil || status != http.StatusCreated {
			h.t.Errorf("create of %s: %d, %v", uri, status, err)
		}
		read := call{path: resources, header: map[string]string{"X-TransactionId": uri + "/list"}}
		if status, err := send(read); err != nil || status != http.StatusOK {
			h.t.Errorf("list: %d, %v", status, err)
		}
	}
}
