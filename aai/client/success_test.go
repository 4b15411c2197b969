package client_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
)

// TestUnexpectedSuccessIsAnOutage asserts that a success response that A&AI never sends is an outage. It comes from another
// server, such as a proxy: the request had no effect, and other requests would get the same response.
func TestUnexpectedSuccessIsAnOutage(t *testing.T) {
	answers := map[string]struct {
		status    int
		mediaType string
		body      string
	}{
		"a page":                 {http.StatusOK, "text/html", "<html>Log in</html>"},
		"a page, created":        {http.StatusCreated, "text/html", "<html>Log in</html>"},
		"foreign JSON":           {http.StatusOK, "application/json", `{"status":"UP"}`},
		"foreign JSON, created":  {http.StatusCreated, "application/json", `{"status":"UP"}`},
		"accepted":               {http.StatusAccepted, "", ""},
		"partial":                {http.StatusPartialContent, "", ""},
		"objects of no version":  {http.StatusOK, "application/json", `{"id":"13dd","k8s-resource":[{"id":"13dd"}],"vf-module":[{"vf-module-id":"m"}],"tenant-id":"t=1"}`},
		"no lists":               {http.StatusOK, "application/json", `{"k8s-resource":null,"vf-module":null}`},
		"objects of no id":       {http.StatusOK, "application/json", `{"k8s-resource":[{"name":"x","resource-version":"1"}],"vf-module":[{"operational-status":"x","resource-version":"1"}],"resource-version":"1"}`},
		"objects of other kinds": {http.StatusOK, "application/json", `{"results":[{"id":"13dd","resource-version":"1"}]}`},
	}
	for name, a := range answers {
		for op, call := range callsWithout(t, "probe") {
			t.Run(op+", "+name, func(t *testing.T) {
				expectOutage(t, a.status, a.mediaType, a.body, call)
			})
		}
	}
	empty := map[string][]int{ // These are the success statuses of other operations, and for reads also their own.
		"list": {200, 201, 204}, "get": {200, 201, 204}, "tenant": {200, 201, 204}, "modules": {200, 201, 204}, "bulk": {200, 204},
		"put": {200, 204}, "update": {201, 204}, "delete": {200, 201}, "relate": {201, 204}, "unrelate": {200, 201}, "status": {201, 204},
	}
	for op, call := range callsWithout(t, "probe") {
		for _, status := range empty[op] {
			t.Run(fmt.Sprintf("%s, %d without a body", op, status), func(t *testing.T) { expectOutage(t, status, "", "", call) })
		}
	}
}

// callsWithout returns all calls but one. Each takes the client as its argument.
func callsWithout(t *testing.T, but string) map[string]func(*client.Client) error {
	all := map[string]func(*client.Client) error{}
	for name := range calls(t, nil) {
		if name != but {
			all[name] = func(c *client.Client) error { return calls(t, c)[name]() }
		}
	}
	return all
}

// expectOutage checks that a call fails with an outage if the server sends the given response, and that the breaker opens.
func expectOutage(t *testing.T, status int, mediaType, body string, call func(*client.Client) error) {
	t.Helper()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if mediaType != "" {
			w.Header().Set("Content-Type", mediaType)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	c := connect(t, s.URL, func(o *client.Options) { o.Breaker = client.NewBreaker(0, newWatch().read) })
	for range 2 {
		err := call(c)
		if err == nil {
			t.Fatalf("status %d with %q passes for a success", status, body)
		}
		if e := failure(t, err); e.Kind != aai.Retry || !e.Outage() || e.Status != status {
			t.Errorf("got %s, outage %t: %v", e.Kind, e.Outage(), e)
		}
	}
	if n := len(s.received()); n != 1 {
		t.Errorf("%d requests, want 1: the breaker is to be open", n)
	}
}
