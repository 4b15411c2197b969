package client_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
)

// TestUnexpectedSuccessIsAnOutage asserts that a success response that A&AI never sends is an outage. It comes from another
// server, such as a proxy, or was truncated in transit: it is not known whether the request had an effect, and other requests
// would get the same response.
func TestUnexpectedSuccessIsAnOutage(t *testing.T) {
	type answer struct {
		status    int
		mediaType string
		body      string
	}
	for name, a := range map[string]answer{
		"a page":                 {200, "text/html", "<html>Log in</html>"},
		"a page, created":        {201, "text/html", "<html>Log in</html>"},
		"foreign JSON":           {200, "application/json", `{"status":"UP"}`},
		"foreign JSON, created":  {201, "application/json", `{"status":"UP"}`},
		"accepted":               {202, "", ""},
		"partial":                {206, "", ""},
		"truncated":              {200, "application/json", `{"id":"13dd","name":`},
		"wrong type":             {200, "application/json", `{"id":"13dd","resource-version":"1","labels":{}}`},
		"another object":         {200, "application/json", `{"id":"14ee","tenant-id":"t","vnf-id":"vnf-2","resource-version":"1"}`},
		"objects of no version":  {200, "application/json", `{"id":"13dd","k8s-resource":[{"id":"13dd"}],"vf-module":[{"vf-module-id":"m"}],"tenant-id":"t=1","vnf-id":"vnf-1"}`},
		"no lists":               {200, "application/json", `{"k8s-resource":null,"vf-module":null}`},
		"objects of no id":       {200, "application/json", `{"k8s-resource":[{"name":"x","resource-version":"1"}],"vf-module":[{"operational-status":"x","resource-version":"1"}],"resource-version":"1"}`},
		"objects of other kinds": {200, "application/json", `{"results":[{"id":"13dd","resource-version":"1"}]}`},
	} {
		for op := range calls {
			t.Run(op+", "+name, func(t *testing.T) { expectOutage(t, op, a.status, a.mediaType, a.body) })
		}
	}
	// These are the success statuses of other operations, and for reads also their own.
	for op, statuses := range map[string][]int{
		"list": {200, 201, 204}, "get": {200, 201, 204}, "tenant": {200, 201, 204}, "target": {200, 201, 204}, "modules": {200, 201, 204}, "bulk": {200, 201, 204},
		"put": {200, 204}, "update": {201, 204}, "delete": {200, 201}, "relate": {201, 204}, "unrelate": {200, 201}, "status": {201, 204},
	} {
		for _, status := range statuses {
			t.Run(fmt.Sprintf("%s, %d without a body", op, status), func(t *testing.T) { expectOutage(t, op, status, "", "") })
		}
	}
	for name, statuses := range map[string][]int{
		"too few": {201}, "too many": {201, 204, 200}, "one done otherwise": {200, 204}, "in another order": {204, 201}, "one failed": {201, 404},
	} {
		body := ""
		for _, status := range statuses {
			body += fmt.Sprintf(`,{"response-status-code":%d}`, status)
		}
		t.Run("bulk, "+name, func(t *testing.T) {
			expectOutage(t, "bulk", http.StatusCreated, "application/json", `{"operation-responses":[`+body[1:]+`]}`)
		})
	}
}

// expectOutage checks that a call fails with an outage if the server sends the given response, and that the breaker opens.
func expectOutage(t *testing.T, op string, status int, mediaType, body string) {
	t.Helper()
	sent := 0
	c := connect(t, "", through(inProcess(func(w http.ResponseWriter, _ *http.Request) {
		sent++
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})), func(o *client.Options) { o.Breaker = client.NewBreaker(0, stopped) })
	kind := aai.Retry
	if op == "probe" { // What answers the probe is not A&AI.
		kind = aai.Misconfigured
	}
	for range 2 {
		err := calls[op](t.Context(), c)
		if err == nil {
			t.Fatalf("status %d with %q passes for a success", status, body)
		}
		if e := failure(t, err); e.Kind != kind || e.Outage() != (kind == aai.Retry) || e.Status != status {
			t.Errorf("got %s, outage %t: %v", e.Kind, e.Outage(), e)
		}
	}
	if sent != 1 {
		t.Errorf("%d requests, want 1: the breaker is to be open", sent)
	}
}
