package client_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/healthscope/healthscope/aai"
)

func TestErrorsAreClassifiedByKind(t *testing.T) {
	generic := func(ec string) string {
		return refusal("serviceException", "SVC3000", "PUT", "v32/x", "the message", ec)
	}
	writes := []string{"put", "update", "delete", "relate", "unrelate", "bulk"}
	cases := map[string]struct {
		status int
		header http.Header
		body   string
		calls  []string // default: every call
		kind   aai.ErrorKind
		code   string
		text   string // in the error's text
	}{
		"missing X-FromAppId":        {status: 400, body: generic("4.0.4009"), kind: aai.Misconfigured, code: "4.0.4009", text: "4.0.4009: the message (transaction"},
		"missing X-TransactionId":    {status: 400, body: generic("4.0.4010"), kind: aai.Misconfigured, code: "4.0.4010"},
		"wrong password":             {status: 403, body: refusal("policyException", "POL3300", "Unauthorized", "ERR.5.1.3300"), kind: aai.Misconfigured, code: "ERR.5.1.3300", text: "refuses the user or the password: Unauthorized"},
		"wrong password, a proxy":    {status: 401, body: "no", kind: aai.Misconfigured, text: "refuses the user or the password"},
		"version not served":         {status: 400, body: refusal("serviceException", "SVC3016", "v32", "Request uri is not valid", "ERR.5.6.3007"), kind: aai.Misconfigured, code: "ERR.5.6.3007", text: `does not serve schema version "v32"`},
		"version retired":            {status: 410, body: refusal("serviceException", "SVC3007", "v32", "v33", "This version is retired", "ERR.5.6.3007"), kind: aai.Misconfigured, text: `does not serve schema version "v32"`},
		"bad encoding":               {status: 400, body: refusal("serviceException", "SVC3008", "URI is not encoded", "ERR.5.6.3008"), calls: writes, kind: aai.Rejected, code: "ERR.5.6.3008"},
		"missing required":           {status: 400, body: generic("ERR.5.2.3000"), calls: writes, kind: aai.Rejected, text: "the message"},
		"no parent":                  {status: 404, body: refusal("serviceException", "SVC3001", "PUT", "x", "Node Not Found:No parent Node of type tenant", "ERR.5.4.6114"), calls: []string{"put"}, kind: aai.MissingDependency, code: aai.CodeNodeNotFound, text: "No parent Node of type tenant"},
		"document vanished":          {status: 404, body: generic("ERR.5.4.6114"), calls: []string{"update", "delete", "relate", "unrelate", "status"}, kind: aai.Conflict, code: aai.CodeNodeNotFound},
		"no target":                  {status: 404, body: refusal("serviceException", "SVC3003", "PUT_EDGE", "x", "generic-vnf", "/aai/v32/network", "Error making edge", "ERR.5.4.6129"), calls: writes, kind: aai.MissingDependency, code: aai.CodeTargetNotFound, text: "Error making edge"},
		"no edge rule, resource":     {status: 400, body: generic("ERR.5.4.6107"), calls: writes, kind: aai.Rejected},
		"no edge rule, list":         {status: 400, body: generic("ERR.5.4.6120"), calls: writes, kind: aai.Rejected},
		"containment edge":           {status: 400, body: generic("ERR.5.4.6145"), calls: writes, kind: aai.Rejected},
		"multiplicity":               {status: 400, body: generic("ERR.5.4.6140"), calls: writes, kind: aai.Rejected},
		"version on create":          {status: 412, body: generic("ERR.5.4.6135"), kind: aai.Conflict},
		"version missing":            {status: 412, body: generic("ERR.5.4.6130"), kind: aai.Conflict},
		"version mismatch":           {status: 412, body: generic("ERR.5.4.6131"), kind: aai.Conflict, code: "ERR.5.4.6131"},
		"412 without a code":         {status: 412, kind: aai.Conflict, text: "Precondition Failed"},
		"delete blocked":             {status: 400, body: refusal("serviceException", "SVC3100", "DELETE", "Node cannot be deleted", "ERR.5.4.6110", "x"), calls: writes, kind: aai.Rejected, code: "ERR.5.4.6110", text: "Node cannot be deleted"},
		"implied delete":             {status: 403, body: refusal("serviceException", "SVC3300", "User is not allowed", "ERR.5.0.9109"), kind: aai.Misconfigured},
		"bulk limit":                 {status: 400, body: generic("ERR.5.4.6147"), calls: writes, kind: aai.Rejected, code: aai.CodePayloadLimit},
		"one of a bulk changed":      {status: 412, body: generic("ERR.5.2.3000"), calls: []string{"bulk"}, kind: aai.Conflict, code: "ERR.5.2.3000"},
		"duplicate vertices":         {status: 400, body: generic("ERR.5.4.6137"), calls: writes, kind: aai.Rejected},
		"duplicates on delete":       {status: 400, body: generic("ERR.5.4.6138"), calls: writes, kind: aai.Rejected},
		"duplicates, with a 500":     {status: 500, body: generic("ERR.5.4.6138"), calls: writes, kind: aai.Rejected},
		"read timeout, with a 400":   {status: 400, body: refusal("serviceException", "SVC7406", "Request timed out", "ERR.5.4.7406"), kind: aai.Retry, code: "ERR.5.4.7406", text: "Request timed out"},
		"storage locks":              {status: 500, body: refusal("serviceException", "SVC6134", "Could not commit", "ERR.5.4.6134"), kind: aai.Retry},
		"storage, 6142":              {status: 400, body: generic("ERR.5.4.6142"), kind: aai.Retry},
		"storage, 5105":              {status: 400, body: generic("ERR.5.4.5105"), kind: aai.Retry},
		"internal":                   {status: 500, body: refusal("serviceException", "SVC3002", "PUT", "x", "Internal Error", "ERR.5.4.4000"), kind: aai.Retry, code: "ERR.5.4.4000"},
		"internal, not by A&AI":      {status: 500, body: "<html>boom</html>", kind: aai.Retry, text: "Internal Server Error"},
		"request timeout":            {status: 408, kind: aai.Retry},
		"too many requests":          {status: 429, kind: aai.Retry, text: "Too Many Requests"},
		"too early, of a proxy":      {status: 425, kind: aai.Retry},
		"bad gateway":                {status: 502, body: "<html>", kind: aai.Retry, text: "Bad Gateway"},
		"no backend":                 {status: 503, kind: aai.Retry},
		"gateway timeout":            {status: 504, kind: aai.Retry},
		"no such path":               {status: 404, body: refusal("serviceException", "SVC3001", "GET", "x", "not a valid path", "ERR.5.6.3001"), calls: append([]string{"get"}, writes...), kind: aai.Rejected, text: "ERR.5.6.3001: not a valid path (transaction"},
		"404 of another server":      {status: 404, body: "404 page not found", kind: aai.Misconfigured, text: "does not know the path"},
		"no PATCH here":              {status: 405, kind: aai.Misconfigured, text: "Method Not Allowed"},
		"no merge patch here":        {status: 415, kind: aai.Misconfigured},
		"no JSON here":               {status: 406, kind: aai.Misconfigured},
		"too large":                  {status: 413, calls: writes, kind: aai.Rejected, text: "Request Entity Too Large"},
		"400 of another server":      {status: 400, body: "<html>", calls: writes, kind: aai.Rejected, text: "status 400: Bad Request (transaction"},
		"a proxy's password":         {status: 407, kind: aai.Misconfigured, text: "status 407: Proxy Authentication Required (transaction"},
		"redirect":                   {status: 307, header: http.Header{"Location": {"https://" + "u:hidden@evil.example/aai?token=hidden"}}, kind: aai.Misconfigured, text: `redirects to "https://evil.example"`},
		"redirect to another path":   {status: 302, header: http.Header{"Location": {"/login?token=hidden"}}, kind: aai.Misconfigured, text: `redirects to "another path"`},
		"a message of many lines":    {status: 400, body: refusal("serviceException", "SVC3000", "a\\nb"+strings.Repeat("c", 600), "ERR.5.2.3000"), calls: writes, kind: aai.Rejected, text: "a b" + strings.Repeat("c", 497) + "… (transaction"},
		"the longest message":        {status: 400, body: refusal("serviceException", "SVC3000", strings.Repeat("c", 500), "ERR.5.2.3000"), calls: writes, kind: aai.Rejected, text: ": " + strings.Repeat("c", 500) + " (transaction"},
		"variables that are no text": {status: 500, body: `{"requestError":{"serviceException":{"variables":[1e999,"ERR.5.4.6138"]}}}`, calls: writes, kind: aai.Rejected, code: "ERR.5.4.6138", text: ": 1e999 (transaction"},
		"error body of other JSON":   {status: 500, body: `{"requestError":{"serviceException":{"variables":[1,null,{},["ERR.5.4.6134"]]}}}`, kind: aai.Retry},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), c.header)
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			if c.calls == nil {
				c.calls = slices.Collect(maps.Keys(calls))
			}
			connected := connect(t, s.URL)
			for _, call := range c.calls {
				before := len(s.received())
				e := failure(t, calls[call](t.Context(), connected))
				if e.Kind != c.kind || e.Status != c.status || c.code != "" && e.Code != c.code {
					t.Errorf("%s: got %s, %d, %q; want %s, %d, %q", call, e.Kind, e.Status, e.Code, c.kind, c.status, c.code)
				}
				if !strings.Contains(e.Error(), c.text) || strings.Contains(e.Error(), "hidden") {
					t.Errorf("%s: %v, want %q in it, and no secret", call, e, c.text)
				}
				requests := s.received()[before:]
				if want := requestsOf(call, e); len(requests) != want {
					t.Fatalf("%s: %d requests, want %d: the client must not repeat them", call, len(requests), want)
				}
				if id := requests[0].Header.Get("X-TransactionId"); string(e.Op) != call || e.TransactionID != id || id == "" {
					t.Errorf("%s: the error is about %q, transaction %q; it was %q", call, e.Op, e.TransactionID, id)
				}
			}
		})
	}
}

// requestsOf returns the number of requests that a failed call sends.
func requestsOf(call string, e *aai.Error) int {
	if call == "probe" && e.Problem == aai.ProblemVersion {
		return 9 // The probe also asks for the other versions.
	}
	return 1
}

func TestRetryAfter(t *testing.T) {
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	cases := map[string]struct {
		value       string
		least, most time.Duration
	}{
		"absent":              {},
		"seconds":             {"120", 2 * time.Minute, 2 * time.Minute},
		"zero":                {value: "0"},
		"negative":            {value: "-5"},
		"date":                {in(90 * time.Second), 80 * time.Second, 90 * time.Second},
		"date in the past":    {value: in(-time.Hour)},
		"words":               {value: "soon"},
		"far too long":        {"99999999", time.Hour, time.Hour},
		"a date in 100 years": {in(876000 * time.Hour), time.Hour, time.Hour},
		"overflow":            {value: "99999999999999999999"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", c.value)
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			e := failure(t, update(t.Context(), connect(t, s.URL)))
			if e.Kind != aai.Retry || e.RetryAfter < c.least || e.RetryAfter > c.most {
				t.Errorf("got %s after %s, want Retry after %s to %s", e.Kind, e.RetryAfter, c.least, c.most)
			}
		})
	}
}
