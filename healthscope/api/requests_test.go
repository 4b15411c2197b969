package api

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// requests returns all requests of the tables, by name.
func requests(t testing.TB) map[string]request {
	t.Helper()
	all := requestsForScopes()
	maps.Copy(all, requestsForPages())
	maps.Copy(all, requestsForServer())
	maps.Copy(all, requestsForDocuments(t))
	maps.Copy(all, requestsForDeployments())
	maps.Copy(all, requestsOfCallers())
	for path, target := range paths {
		if !posts[path] {
			all[path+" is not acceptable"] = request{path: path, accept: "image/png", want: 406, detail: `the header Accept is "image/png"`}
		}
		all[path+" is too long"] = request{path: path, target: target + "?" + strings.Repeat("x", maxURLBytes), want: 414, detail: "bytes; at most 8000 are read"}
	}
	return all
}

func requestsForServer() map[string]request {
	notYet := func() error { return errors.New("the bundles have not been read yet") }
	return map[string]request{
		"openapi":                           {path: "/openapi.json", want: 200},
		"openapi with parameter":            {path: "/openapi.json", target: "/openapi.json?format=yaml", want: 400, detail: `unknown query parameter "format" with value "yaml"`},
		"openapi as text":                   {path: "/openapi.json", accept: "text/plain", want: 406, detail: `the header Accept is "text/plain"; this path can be answered as application/json`},
		"healthz":                           {path: "/healthz", want: 200},
		"healthz as JSON":                   {path: "/healthz", accept: "application/json", want: 200},
		"healthz with parameter":            {path: "/healthz", target: "/healthz?verbose", want: 400, detail: `unknown query parameter "verbose" with value ""`},
		"readyz":                            {path: "/readyz", want: 200},
		"readyz with parameter":             {path: "/readyz", target: "/readyz?exclude=x", want: 400, detail: `unknown query parameter "exclude"`},
		"readyz not ready":                  {path: "/readyz", ready: notYet, want: 503, detail: "not ready: the bundles have not been read yet"},
		"readyz panics":                     {path: "/readyz", ready: func() error { panic("secret") }, want: 500, detail: "its log says how"},
		"healthz is alive when not ready":   {path: "/healthz", ready: notYet, want: 200},
		"a long header is quoted in part":   {path: "/scopes", accept: strings.Repeat("x/y,", 1000), want: 406, detail: `y,"... (4000 bytes); this path can be answered as application/json or text/plain`},
		"an unknown type beside a known":    {path: "/scopes", accept: "text/html, application/json;q=0.1", want: 200},
		"a scope of the default text first": {path: "/scopes/{name}", accept: "*/*;q=0.1, text/*", want: 200},
	}
}

func requestsForScopes() map[string]request {
	panics := scopesFunc(func(context.Context) error { panic("index out of range: secret") })
	gone := scopesFunc(func(context.Context) error { return errors.New("the cache is not started") })
	out := func() error {
		return &OutageError{Reason: "ClusterUnreachable", Message: `cluster "local": the API server does not answer`, LastSeen: noon.Time}
	}
	since := `the API server does not answer; it was known last at 2026-05-01T10:00:00Z`
	return map[string]request{
		"list":              {path: "/scopes", want: 200},
		"list as text":      {path: "/scopes", accept: "text/plain", want: 200},
		"list empty":        {path: "/scopes", scopes: memory{}, want: 200},
		"list of namespace": {path: "/scopes", target: "/scopes?namespace=telco", want: 200},
		"list of bad name":  {path: "/scopes", target: "/scopes?namespace=Telco_1", want: 400, detail: `parameter "namespace" has the value "Telco_1", which cannot be a name`},
		"list of no name":   {path: "/scopes", target: "/scopes?namespace=", want: 400, detail: `parameter "namespace" has the value ""`},
		"list of subdomain": {path: "/scopes", target: "/scopes?namespace=a.b", want: 400, detail: `parameter "namespace" has the value "a.b"`},
		"list twice":        {path: "/scopes", target: "/scopes?namespace=a&namespace=b", want: 400, detail: `query parameter "namespace" is given 2 times, with values "a" and "b"`},
		"list misspelt":     {path: "/scopes", target: "/scopes?namspace=a", want: 400, detail: `unknown query parameter "namspace" with value "a"; this path takes ["namespace" "watch"]`},
		"list semicolon":    {path: "/scopes", target: "/scopes?a;b", want: 400, detail: "cannot read the query"},
		"list bad escape":   {path: "/scopes", target: "/scopes?a=%zz", want: 400, detail: `cannot read the query "a=%zz": invalid URL escape "%zz"`},
		"list fails":        {path: "/scopes", scopes: gone, want: 503, detail: "cannot list the HealthScopes of all namespaces: the cache is not started"},
		"list panics":       {path: "/scopes", scopes: panics, want: 500, detail: "the server failed while it made the answer; its log says how"},

		"list that is known":        {path: "/scopes", header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"list with another known":   {path: "/scopes", header: http.Header{"If-None-Match": {`"x"`}}, want: 200},
		"scope that is known":       {path: "/scopes/{name}", header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"scope elsewhere, known":    {path: "/scopes/{namespace}/{name}", header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"list watched, or not":      {path: "/scopes", target: "/scopes?watch=yes", want: 400, detail: `query parameter "watch" has the value "yes"; it must be true or false`},
		"list not watched":          {path: "/scopes", target: "/scopes?watch=false", want: 200},
		"list watched as JSON":      {path: "/scopes", target: "/scopes?watch=true", accept: "application/json", want: 406, detail: `this path can be answered as text/event-stream with watch=true, or without it as application/json or text/plain`},
		"list as stream, unwatched": {path: "/scopes", accept: "text/event-stream", want: 406, detail: `this path can be answered as application/json or text/plain`},
		"scope watched, not there":  {path: "/scopes/{name}", target: "/scopes/web?watch=true", want: 404, detail: `there is no HealthScope "web"`},

		"list in an outage":            {path: "/scopes", current: out, want: 503, detail: "cannot say how the HealthScopes of all namespaces are now: cluster \"local\": " + since},
		"list watched in an outage":    {path: "/scopes", target: "/scopes?watch=true", current: out, want: 503, detail: since},
		"list as text in an outage":    {path: "/scopes", accept: "text/plain", current: out, want: 503, detail: since},
		"scope in an outage":           {path: "/scopes/{name}", current: out, want: 503, detail: `cannot say how HealthScope "vfw" in namespace "default" is now: cluster "local": ` + since},
		"scope elsewhere in an outage": {path: "/scopes/{namespace}/{name}", current: out, want: 503, detail: since},
		"readyz in an outage":          {path: "/readyz", current: out, want: 503, detail: "not ready: "},
		"healthz in an outage":         {path: "/healthz", current: out, want: 200},

		"scope of every field":   {path: "/scopes/{name}", want: 200},
		"scope as text":          {path: "/scopes/{name}", accept: "text/plain", want: 200},
		"scope not evaluated":    {path: "/scopes/{name}", target: "/scopes/new", want: 200},
		"scope missing":          {path: "/scopes/{name}", target: "/scopes/web", want: 404, detail: `there is no HealthScope "web" in namespace "default", the default one; /scopes/{namespace}/{name} looks in another`},
		"scope missing as text":  {path: "/scopes/{name}", target: "/scopes/web", accept: "text/plain", want: 404, detail: `there is no HealthScope "web"`},
		"scope of bad name":      {path: "/scopes/{name}", target: "/scopes/V", want: 400, detail: `parameter "name" has the value "V", which cannot be a name`},
		"scope of long name":     {path: "/scopes/{name}", target: "/scopes/" + strings.Repeat("x", 5000), want: 400, detail: `xxx"... (5000 bytes), which cannot be a name: must be no more than 253`},
		"scope of escaped slash": {path: "/scopes/{name}", target: "/scopes/a%2Fb", want: 400, detail: `parameter "name" has the value "a/b"`},
		"scope of dots":          {path: "/scopes/{name}", target: "/scopes/%2e%2e", want: 400, detail: `parameter "name" has the value ".."`},
		"scope with parameter":   {path: "/scopes/{name}", target: "/scopes/vfw?namespace=telco", want: 400, detail: `unknown query parameter "namespace" with value "telco"; this path takes ["watch"]`},
		"scope fails":            {path: "/scopes/{name}", scopes: gone, want: 503, detail: `cannot get HealthScope "vfw" in namespace "default": the cache is not started`},
		"scope panics":           {path: "/scopes/{name}", scopes: panics, want: 500, detail: "the server failed while it made the answer; its log says how"},

		"scope elsewhere":                  {path: "/scopes/{namespace}/{name}", want: 200},
		"scope elsewhere as text":          {path: "/scopes/{namespace}/{name}", accept: "text/plain", want: 200},
		"scope elsewhere missing":          {path: "/scopes/{namespace}/{name}", target: "/scopes/telco/vfw", want: 404, detail: `there is no HealthScope "vfw" in namespace "telco"`},
		"scope elsewhere of bad name":      {path: "/scopes/{namespace}/{name}", target: "/scopes/telco/-a", want: 400, detail: `parameter "name" has the value "-a"`},
		"scope elsewhere of bad namespace": {path: "/scopes/{namespace}/{name}", target: "/scopes/a.b/web", want: 400, detail: `parameter "namespace" has the value "a.b"`},
		"scope elsewhere fails":            {path: "/scopes/{namespace}/{name}", scopes: gone, want: 503, detail: `cannot get HealthScope "web" in namespace "telco": the cache is not started`},
		"scope elsewhere panics":           {path: "/scopes/{namespace}/{name}", scopes: panics, want: 500, detail: "its log says how"},
	}
}

// TestEntityTags checks the comparison of entity tags, which RFC 9110 section 13.1.2 defines.
func TestEntityTags(t *testing.T) {
	for header, want := range map[string]bool{
		`"a"`: true, `W/"a"`: true, `"b", "a"`: true, `"b",W/"a"`: true, "*": true,
		"": false, `"b"`: false, `W/"b"`: false, `a`: false,
	} {
		if got := etagMatches(header, `"a"`); got != want {
			t.Errorf("If-None-Match: %s: %t", header, got)
		}
	}
}
