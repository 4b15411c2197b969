package simulator

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// carry sends a request without a network, as in-process transports do: a panic to abort is a broken connection.
func (h *harness) carry(c call) (out outcome, err error) {
	h.t.Helper()
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler { //nolint:errorlint // a panic value, never wrapped
				panic(p)
			}
			err = errors.New("connection closed")
		}
	}()
	return h.send(c), nil
}

// wired returns what sends requests over a loopback connection; the error is that of the request or of its body.
func (h *harness) wired() func(call) (outcome, error) {
	h.t.Helper()
	server := httptest.NewServer(h)
	transport := &http.Transport{DisableCompression: true}
	h.t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	client := &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(c call) (outcome, error) {
		template := c.request(h.t)
		ctx, cancel := context.WithTimeout(h.t.Context(), 10*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, template.Method, server.URL+template.RequestURI, strings.NewReader(c.body))
		if err != nil {
			return outcome{}, err
		}
		r.Header = template.Header
		response, err := client.Do(r)
		if err != nil {
			return outcome{}, err
		}
		body, err := io.ReadAll(response.Body)
		return outcome{response.StatusCode, response.Header, string(body)}, errors.Join(err, response.Body.Close())
	}
}

func (h *harness) fault(rules ...Fault) {
	h.t.Helper()
	if err := h.AddFaults(rules...); err != nil {
		h.t.Fatal(err)
	}
}

// A fault that breaks a connection must break it on a wire and in process alike.
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
		"in no body":              {Fault{Drop: DropMidBody}, delete1(pod+"?resource-version="+anyVersion, ""), false},
		"wrong length":            {Fault{WrongLength: true}, list, false},
		"wrong length of nothing": {Fault{WrongLength: true}, create, true},
		"wrong length of a page":  {Fault{WrongLength: true, Status: 502}, create, false},
	} {
		t.Run(name, func(t *testing.T) {
			for transport, sender := range map[string]func(*harness) func(call) (outcome, error){
				"wire": (*harness).wired, "in process": func(h *harness) func(call) (outcome, error) { return h.carry },
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

func TestResetIsAReset(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			server := httptest.NewUnstartedServer(h)
			start := server.Start
			if secure {
				start = server.StartTLS // speaks HTTP/1.1 unless told otherwise
			}
			start()
			defer server.Close()
			h.fault(Fault{Drop: DropAfterCommit, Manner: MannerReset})
			c := call{path: vnf}.request(t)
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

func TestHalfOfABodyArrives(t *testing.T) {
	h := newHarness(t, Options{})
	whole := h.must(call{path: vnf}).body
	send := h.wired()
	for _, f := range []Fault{{Drop: DropMidBody, Count: 1}, {WrongLength: true, Count: 1}} {
		h.fault(f)
		out, err := send(call{path: vnf})
		if !errors.Is(err, io.ErrUnexpectedEOF) || out.status != http.StatusOK {
			t.Errorf("%+v: status %d, error %v", f, out.status, err)
		}
		want := whole
		if f.Drop == DropMidBody {
			want = whole[:len(whole)/2]
		}
		diff(t, "what arrives", want, out.body)
	}
	diff(t, "in the journal", http.StatusOK, h.Requests()[1].Status)
}

func TestHangEnds(t *testing.T) {
	for name, end := range map[string]func(h *harness, cancel func()){
		"when the client goes":         func(_ *harness, cancel func()) { cancel() },
		"when the faults are cleared":  func(h *harness, _ func()) { h.ClearFaults() },
		"when the server is restarted": func(h *harness, _ func()) { _ = h.Restart(false) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, Options{})
				h.fault(Fault{Drop: DropAfterCommit, Manner: MannerHang})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan any, 1)
				r := put1(pod, podBody).request(t).WithContext(ctx)
				go func() {
					defer func() { ended <- recover() }()
					h.ServeHTTP(httptest.NewRecorder(), r)
				}()
				synctest.Wait()
				if len(ended) > 0 {
					t.Fatalf("the request ended with %v", <-ended)
				}
				_, exists := h.Get(pod)
				diff(t, "applied", true, exists)
				diff(t, "in the journal as unanswered", 0, h.Requests()[0].Status)
				end(h, cancel)
				if p := <-ended; p != http.ErrAbortHandler { //nolint:errorlint // a panic value, never wrapped
					t.Errorf("the request ended with %v", p)
				}
			})
		})
	}
}

func TestHangOnTheWireEndsWithTheClient(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	h := newHarness(t, Options{})
	server := httptest.NewServer(h)
	h.fault(Fault{Drop: DropMidBody, Manner: MannerHang})
	socket, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := (call{path: vnf}).request(t).Write(socket); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(socket, make([]byte, 100)); err != nil {
		t.Errorf("nothing arrives: %v", err)
	}
	if err := socket.Close(); err != nil {
		t.Fatal(err)
	}
	server.Close() // waits for the handler
}

func TestDripIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		whole := h.must(call{path: vnf}).body
		h.fault(Fault{Drip: time.Second})
		start := time.Now()
		diff(t, "body", whole, h.must(call{path: vnf}).body)
		diff(t, "time taken", time.Duration(len(whole))*time.Second, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		w := httptest.NewRecorder()
		defer func() {
			if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // a panic value, never wrapped
				t.Errorf("ended with %v", p)
			}
			diff(t, "what a client has that leaves after ten seconds", whole[:10], w.Body.String())
		}()
		h.ServeHTTP(w, call{path: vnf}.request(t).WithContext(ctx))
	})
}

func TestSpoiltAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		fault  Fault
		call   call
		status int
		check  func(t *testing.T, out outcome, whole string)
	}{
		"empty": {Fault{Empty: true}, call{path: vnf}, 200, func(t *testing.T, out outcome, _ string) {
			t.Helper()
			diff(t, "body", "", out.body)
		}},
		"empty page": {Fault{Empty: true, Status: 503}, call{path: vnf}, 503, func(t *testing.T, out outcome, _ string) {
			t.Helper()
			diff(t, "body", "", out.body)
		}},
		"gzip": {Fault{Gzip: true}, call{path: vnf}, 200, func(t *testing.T, out outcome, whole string) {
			t.Helper()
			diff(t, "encoding", "gzip", out.header.Get("Content-Encoding"))
			r, err := gzip.NewReader(bytes.NewReader([]byte(out.body)))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r)
			diff(t, "error", error(nil), err)
			diff(t, "unpacked", whole, string(body))
		}},
		"gzip of nothing": {Fault{Gzip: true}, put1(pod, podBody), 201, func(t *testing.T, out outcome, _ string) {
			t.Helper()
			diff(t, "encoding", "", out.header.Get("Content-Encoding"))
		}},
		"XML":                   {Fault{XML: true}, call{path: vnf}, 200, isXML("generic-vnf")},
		"XML of an error":       {Fault{XML: true, Code: "AAI_6134"}, call{path: vnf}, 500, isXML("Fault")},
		"XML of a bulk request": {Fault{XML: true}, bulk1(operations(op("patch", vnf, "{}"))), 201, isXML("operation-responses")},
		"XML of the health":     {Fault{XML: true}, call{path: "/aai/util/echo"}, 200, isXML("health")},
		"redirect": {Fault{Status: 307, Location: "http://127.0.0.1:1/aai"}, call{path: vnf}, 307, func(t *testing.T, out outcome, _ string) {
			t.Helper()
			diff(t, "location", "http://127.0.0.1:1/aai", out.header.Get("Location"))
		}},
		"HTTP date": {Fault{Status: 503, RetryAfter: "Fri, 20 Nov 2026 12:00:00 GMT"}, call{path: vnf}, 503, func(t *testing.T, out outcome, _ string) {
			t.Helper()
			diff(t, "retry after", "Fri, 20 Nov 2026 12:00:00 GMT", out.header.Get("Retry-After"))
		}},
		"spurious 412": {Fault{Code: "AAI_6131"}, patch1(vnf, "{}"), 412, func(t *testing.T, out outcome, _ string) {
			t.Helper()
			diff(t, "code", "ERR.5.4.6131", out.ec(t))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			whole := h.must(call{path: vnf}).body
			send := h.wired()
			h.fault(tc.fault)
			out, err := send(tc.call)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "status", tc.status, out.status)
			tc.check(t, out, whole)
		})
	}
}

func isXML(root string) func(*testing.T, outcome, string) {
	return func(t *testing.T, out outcome, _ string) {
		t.Helper()
		diff(t, "media type", "application/xml", out.header.Get("Content-Type"))
		if !strings.Contains(out.body, "?><"+root) || !strings.HasSuffix(out.body, "</"+root+">") {
			t.Errorf("no XML of %s: %s", root, out.body)
		}
	}
}

func TestReadTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		opts Options
		call call
		took time.Duration
		ec   string
	}{
		"by default":         {Options{}, call{path: vnf}, 100 * time.Second, "ERR.5.4.7406"},
		"shorter":            {Options{ReadTimeout: time.Second}, call{path: resources}, time.Second, "ERR.5.4.7406"},
		"not that late":      {Options{ReadTimeout: time.Hour}, call{path: vnf}, time.Hour, ""},
		"only for reads":     {Options{}, patch1(vnf, "{}"), time.Hour, ""},
		"filters come first": {Options{ReadTimeout: time.Second}, call{path: "/aai/v8/x"}, time.Second, "ERR.5.6.3007"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, tc.opts)
				h.fault(Fault{Delay: time.Hour})
				start := time.Now()
				diff(t, "code", tc.ec, h.send(tc.call).ec(t))
				diff(t, "time taken", tc.took, time.Since(start))
			})
		})
	}
}
