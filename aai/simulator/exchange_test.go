package simulator

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// TestBrokenConnections asserts that a fault breaks connections over the network and in process in the same way.
func TestBrokenConnections(t *testing.T) {
	create, list := put1(resources+"/k8s-resource/new", podBody), call{path: resources}
	for name, tc := range map[string]struct {
		fault   Fault
		call    call
		applied bool
	}{
		"closed before":           {Fault{Drop: DropBeforeCommit}, create, false},
		"closed after":            {Fault{Drop: DropAfterCommit}, create, true},
		"reset before":            {Fault{Drop: DropBeforeCommit, Manner: MannerReset}, create, false},
		"reset after":             {Fault{Drop: DropAfterCommit, Manner: MannerReset}, create, true},
		"closed in a body":        {Fault{Drop: DropMidBody}, list, false},
		"reset in a body":         {Fault{Drop: DropMidBody, Manner: MannerReset}, list, false},
		"in the body of an error": {Fault{Drop: DropMidBody, Code: "AAI_6134"}, create, false},
		"in an empty body":        {Fault{Drop: DropMidBody}, create, true},
		"in no body":              {Fault{Drop: DropMidBody}, delete1(pod+"?resource-version={rv}", ""), false},
		"wrong length":            {Fault{WrongLength: true}, list, false},
		"wrong length of nothing": {Fault{WrongLength: true}, create, true},
		"wrong length of a page":  {Fault{WrongLength: true, Status: 502}, create, false},
	} {
		t.Run(name, func(t *testing.T) {
			for transport, sender := range map[string]func(*harness) func(call) (outcome, error){
				"wire": (*harness).overNetwork, "in process": func(h *harness) func(call) (outcome, error) { return h.sendInProcess },
			} {
				h := newHarness(t, Options{})
				h.must(put1(pod, podBody))
				send := sender(h)
				tc.fault.Count = 1
				h.fault(tc.fault)
				if out, err := send(tc.call); err == nil {
					t.Errorf("%s: status %d and body %q, want a broken connection", transport, out.status, out.body)
				}
				_, exists := h.Get(resources + "/k8s-resource/new")
				diff(t, transport+": applied", tc.applied, exists)
				if _, err := send(list); err != nil {
					t.Errorf("%s: the next request fails: %v", transport, err)
				}
			}
		})
	}
}

func TestMannerResetSendsRST(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			server := httptest.NewUnstartedServer(h)
			start := server.Start
			if secure {
				start = server.StartTLS // speaks HTTP/1.1 by default
			}
			start()
			defer server.Close()
			h.fault(Fault{Drop: DropAfterCommit, Manner: MannerReset})
			c := h.request(call{path: vnf})
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+c.RequestURI, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := server.Client().Do(r)
			if err == nil {
				_ = response.Body.Close()
			}
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got %v, want a reset connection", err)
			}
		})
	}
}

func TestDropMidBodySendsHalfOfTheBody(t *testing.T) {
	h := newHarness(t, Options{})
	whole := h.must(call{path: vnf}).body
	send := h.overNetwork()
	for _, f := range []Fault{{Drop: DropMidBody, Count: 1}, {WrongLength: true, Count: 1}} {
		h.fault(f)
		out, err := send(call{path: vnf})
		if !errors.Is(err, io.ErrUnexpectedEOF) || out.status != http.StatusOK {
			t.Errorf("%+v: status %d, error %v", f, out.status, err)
		}
		want, announced := whole, 2*len(whole)
		if f.Drop == DropMidBody {
			want, announced = whole[:len(whole)/2], len(whole)
		}
		diff(t, "what arrives", want, out.body)
		diff(t, "what is announced", strconv.Itoa(announced), out.header.Get("Content-Length"))
	}
	diff(t, "in the journal", http.StatusOK, h.Requests()[1].Status)
}

func TestFaultsAlterAnswers(t *testing.T) {
	const date = "Fri, 20 Nov 2026 12:00:00 GMT"
	h := newHarness(t, Options{})
	whole := h.must(call{path: vnf}).body
	send := h.overNetwork()
	for name, tc := range map[string]struct {
		fault         Fault
		call          call
		status        int
		header, value string
		body          string
	}{
		"empty":                   {Fault{Empty: true}, call{path: vnf}, 200, "Content-Type", "application/json", ""},
		"empty page":              {Fault{Empty: true, Status: 503}, call{path: vnf}, 503, "Content-Type", "text/html", ""},
		"half":                    {Fault{Truncate: true}, call{path: vnf}, 200, "Content-Length", strconv.Itoa(len(whole) / 2), whole[:len(whole)/2]},
		"page that says OK":       {Fault{Status: 200}, call{path: vnf}, 200, "Content-Type", "text/html", "<html><body><h1>200 OK</h1></body></html>"},
		"JSON of another program": {Fault{Status: 200, Body: `{"login":"/sso"}`}, call{path: vnf}, 200, "Content-Type", "application/json", `{"login":"/sso"}`},
		"gzip of nothing":         {Fault{Gzip: true}, put1(pod, podBody), 201, "Content-Encoding", "", ""},
		"XML":                     {Fault{XML: true}, call{path: vnf}, 200, "Content-Type", "application/xml", xmlErrorBody},
		"XML of an error":         {Fault{XML: true, Code: "AAI_6134"}, call{path: vnf}, 500, "Content-Type", "application/xml", xmlErrorBody},
		"XML of the health":       {Fault{XML: true}, call{path: "/aai/util/echo"}, 200, "Content-Type", "application/xml", xmlErrorBody},
		"XML of nothing":          {Fault{XML: true}, put1(pod+"-xml", podBody), 201, "Content-Type", "application/xml", ""},
		"redirect":                {Fault{Status: 307, Location: "http://127.0.0.1:1/aai", Empty: true}, call{path: vnf}, 307, "Location", "http://127.0.0.1:1/aai", ""},
		"wait":                    {Fault{Status: 503, RetryAfter: date, Empty: true}, call{path: vnf}, 503, "Retry-After", date, ""},
		"version that is right":   {Fault{Code: "AAI_6131", Empty: true}, patch1(vnf, "{}"), 412, "Content-Type", "application/json", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.fault.Count = 1
			h.fault(tc.fault)
			out, err := send(tc.call)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "status", tc.status, out.status)
			diff(t, tc.header, tc.value, out.header.Get(tc.header))
			diff(t, "body", tc.body, out.body)
		})
	}
	h.fault(Fault{Gzip: true})
	out, err := send(call{path: vnf})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "encoding", "gzip", out.header.Get("Content-Encoding"))
	r, err := gzip.NewReader(strings.NewReader(out.body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	diff(t, "error", error(nil), err)
	diff(t, "unpacked", whole, string(body))
}

// TestConcurrentClients asserts that with concurrent clients every create, edge and bulk request takes effect completely or not
// at all. Run it with -race.
func TestConcurrentClients(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("clients", func(t *testing.T) {
		h := newHarness(t, Options{Strict: true})
		send := h.overNetwork()
		var clients sync.WaitGroup
		for client := range 8 {
			clients.Go(func() { h.churn(send, client) })
		}
		clients.Wait()
		checkInvariants(t, h.inventory)
		diff(t, "k8s-resources", 8*10, len(h.List(resources)))
		diff(t, "edges of the VNF", 8*10, len(links(h, vnf)))
		diff(t, "violations", []Violation{}, h.Violations())
	})
}

// churn creates resources with edges in one bulk request each, and reads the list in between.
func (h *harness) churn(send func(call) (outcome, error), client int) {
	for i := range 10 {
		uri := fmt.Sprintf("%s/k8s-resource/c%d-%d", resources, client, i)
		create := bulk1(operations(op("put", uri, podBody), op("put", uri+relationshipPath, linkTo(vnf))))
		if out, err := send(create); err != nil || out.status != http.StatusCreated {
			h.t.Errorf("create of %s: %d, %v", uri, out.status, err)
		}
		if out, err := send(call{path: resources}); err != nil || out.status != http.StatusOK {
			h.t.Errorf("list: %d, %v", out.status, err)
		}
	}
}

// TestDelayedAndHangingRequestsEnd asserts that a delayed request ends when its client or the server ends. A hanging request
// also ends when the faults are cleared.
func TestDelayedAndHangingRequestsEnd(t *testing.T) {
	delay, hang := Fault{Delay: time.Hour}, Fault{Drop: DropAfterCommit, Manner: MannerHang}
	clientGoes := func(_ *harness, cancel func()) { cancel() }
	restarts := func(h *harness, _ func()) { _ = h.Restart(false) }
	for name, tc := range map[string]struct {
		fault   Fault
		end     func(h *harness, cancel func())
		applied bool
	}{
		"delay, when the client goes":         {delay, clientGoes, false},
		"delay, when the server is restarted": {delay, restarts, false},
		"hang, when the client goes":          {hang, clientGoes, true},
		"hang, when the server is restarted":  {hang, restarts, true},
		"hang, when the faults are cleared":   {hang, func(h *harness, _ func()) { h.ClearFaults() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, Options{})
				h.fault(tc.fault)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan any, 1)
				r := h.request(put1(pod, podBody)).WithContext(ctx)
				go func() {
					defer func() { ended <- recover() }()
					h.ServeHTTP(httptest.NewRecorder(), r)
				}()
				synctest.Wait()
				if len(ended) > 0 {
					t.Fatalf("the request ended with %v", <-ended)
				}
				tc.end(h, cancel)
				if p := <-ended; p != http.ErrAbortHandler { //nolint:errorlint // a panic value, never wrapped
					t.Errorf("the request ended with %v", p)
				}
				_, exists := h.Get(pod)
				diff(t, "applied", tc.applied, exists)
				diff(t, "status in the journal", 0, h.Requests()[0].Status)
			})
		})
	}
}

func TestDelayAndDripAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		whole := h.must(call{path: vnf}).body
		h.fault(Fault{Drip: time.Second, Delay: time.Minute})
		start := time.Now()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, h.request(call{path: vnf}))
		diff(t, "body", whole, w.Body.String())
		diff(t, "each byte is sent at once", true, w.Flushed)
		diff(t, "time taken", time.Minute+time.Duration(len(whole))*time.Second, time.Since(start))
	})
}

func TestTooLargeBodiesAreRejected(t *testing.T) {
	h := newHarness(t, Options{})
	diff(t, "status", 400, h.send(put1(pod, strings.Repeat(" ", maxBody+1))).status)
}
