package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rights is a Guard with some tokens and the accesses of their callers.
type rights struct {
	// may holds the allowed accesses, by token; nil allows all.
	may map[string][]Access
	// err is the error of all calls of Authenticate; nil for none.
	err error
	// asked records the accesses that Authorize was called with; nil to record none.
	asked *[]Access
}

func (r rights) Authenticate(_ *http.Request, token string) (Caller, bool, error) {
	_, ok := r.may[token]
	return Caller{Name: "caller-" + token}, ok, r.err
}

func (r rights) Authorize(_ context.Context, caller Caller, access Access) (bool, error) {
	if r.asked != nil {
		*r.asked = append(*r.asked, access)
	}
	allowed := r.may[strings.TrimPrefix(caller.Name, "caller-")]
	return allowed == nil || slices.Contains(allowed, access), nil
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// requestsOfCallers returns requests of callers with different rights, for every path.
func requestsOfCallers() map[string]request {
	guard := rights{may: map[string][]Access{"all": nil, "none": {}}}
	all := map[string]request{
		"a scheme that is none of ours": {path: "/scopes", guard: guard, header: http.Header{"Authorization": {"Basic dTpw"}}, want: 401, detail: `the header Authorization cannot be read; it must be "Bearer <token>"`},
		"two tokens":                    {path: "/scopes", guard: guard, header: http.Header{"Authorization": {"Bearer all", "Bearer all"}}, want: 401, detail: "is given 2 times"},
		"an empty token":                {path: "/scopes", guard: guard, header: http.Header{"Authorization": {"Bearer "}}, want: 401, detail: "cannot be read"},
		"a scheme in lower case":        {path: "/scopes", guard: guard, header: http.Header{"Authorization": {"bearer all"}}, want: 200},
		"too many streams":              {path: "/scopes", target: "/scopes?watch=true", guard: guard, streams: maxStreamsOfOne, header: bearer("all"), want: 429, detail: `user "caller-all" has 32 streams open already`},
		"too many streams of one":       {path: "/scopes/{name}", target: "/scopes/vfw?watch=true", guard: guard, streams: maxStreamsOfOne, header: bearer("all"), want: 429, detail: "close one, or ask without watch"},
		"too many streams, elsewhere":   {path: "/scopes/{namespace}/{name}", target: "/scopes/telco/web?watch=true", guard: guard, streams: maxStreamsOfOne, header: bearer("all"), want: 429, detail: "streams open"},
		"streams do not stop answers":   {path: "/scopes", guard: guard, streams: maxStreamsOfOne, header: bearer("all"), want: 200},
		"nobody knows whose token":      {path: "/scopes", guard: rights{err: errors.New("no answer")}, header: bearer("all"), want: 503, detail: "cannot find out whose the bearer token is: no answer"},
	}
	for path := range paths {
		open := path == "/openapi.json" || path == "/healthz" || path == "/readyz"
		_, fine := methodOf(path)
		refused := func(status int) int {
			if open {
				return fine
			}
			return status
		}
		all[path+" without token"] = request{path: path, guard: guard, want: refused(401), detail: "there is no header Authorization"}
		all[path+" with a token of nobody"] = request{path: path, guard: guard, header: bearer("old"), want: refused(401), detail: "the bearer token is not accepted"}
		all[path+" without right"] = request{path: path, guard: guard, header: bearer("none"), want: refused(403), detail: `user "caller-none" may not `}
		if !open {
			all[path+" after too many tokens"] = request{path: path, guard: rights{err: fmt.Errorf("%w: of you", ErrTooMany)}, header: bearer("all"), want: 429, detail: "too many requests: of you"}
		}
		all[path+" with right"] = request{path: path, guard: guard, header: bearer("all"), want: fine}
	}
	return all
}

func TestWhatCallersAreAskedFor(t *testing.T) {
	tests := map[string]Access{
		"/scopes":                       {Verb: "list"},
		"/scopes?namespace=telco":       {Verb: "list", Namespace: "telco"},
		"/scopes/vfw":                   {Verb: "get", Namespace: "default", Name: "vfw"},
		"/scopes/telco/web":             {Verb: "get", Namespace: "telco", Name: "web"},
		"/scopes/telco/nope":            {Verb: "get", Namespace: "telco", Name: "nope"},
		"/scopes/telco/nope?watch=true": {Verb: "get", Namespace: "telco", Name: "nope"},
		"/v1alpha1/scopes":              {Verb: "list"},
		"/v1alpha1/scopes?health=healthy&namespace=telco": {Verb: "list", Namespace: "telco"},
		"/v1alpha1/scopes/telco/web":                      {Verb: "get", Namespace: "telco", Name: "web"},
		autumnURL:                                         {Verb: "get", Path: autumnURL},
		networkURL + "?health=true":                       {Verb: "get", Path: networkURL},
		"/v1/instance/odd-fox/status":                     {Verb: "get", Path: "/v1/instance/odd-fox/status"},
	}
	for target, want := range tests {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			t.Run(method+" "+target, func(t *testing.T) {
				var asked []Access
				guard := rights{may: map[string][]Access{"none": {}}, asked: &asked}
				got := send(t, NewHandler(Options{Scopes: manyScopes(), Documents: manyDocuments(t), Guard: guard}), method, target, bearer("none"))
				if diff := cmp.Diff([]Access{want}, asked); diff != "" || got.Code != http.StatusForbidden {
					t.Errorf("status %d; asked (-want +got):\n%s", got.Code, diff)
				}
			})
		}
	}
}

// TestARefusalDoesNotTellWhatExists asserts that a caller without the right gets the same response whether the object exists or
// not.
func TestARefusalDoesNotTellWhatExists(t *testing.T) {
	guard := rights{may: map[string][]Access{"none": {}}}
	h := NewHandler(Options{Scopes: manyScopes(), Documents: manyDocuments(t), Guard: guard})
	pairs := [][2]string{{"/scopes/telco/web", "/scopes/telco/xyz"}, {autumnURL, strings.Replace(autumnURL, "autumn", "spring", 1)}, {"/v1/instance/gentle-fox/status", "/v1/instance/gentle-cat/status"}}
	for _, pair := range pairs {
		there, not := get(t, h, pair[0], bearer("none")), get(t, h, pair[1], bearer("none"))
		if there.Code != http.StatusForbidden || not.Code != there.Code || len(there.Header()) != len(not.Header()) {
			t.Errorf("%s answers %d, %s %d", pair[0], there.Code, pair[1], not.Code)
		}
	}
}
