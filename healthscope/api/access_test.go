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

// undecided is a Guard that cannot find out what callers may do.
type undecided struct{ rights }

func (undecided) Authorize(context.Context, Caller, Access) (bool, error) {
	return false, errors.New("no answer")
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// requestsOfCallers returns requests of callers with different rights, to every path.
func requestsOfCallers() map[string]request {
	guard := rights{may: map[string][]Access{"all": nil, "none": {}}}
	all := map[string]request{
		"a scheme that is none of ours":       {path: "/scopes", guard: guard, header: http.Header{"Authorization": {"Basic dTpw"}}, want: 401, detail: `the header Authorization cannot be read; it must be "Bearer <token>"`},
		"two tokens":                          {path: "/scopes", guard: guard, header: http.Header{"Authorization": {"Bearer all", "Bearer all"}}, want: 401, detail: "is given 2 times"},
		"an empty token":                      {path: "/scopes", guard: guard, header: http.Header{"Authorization": {"Bearer "}}, want: 401, detail: "cannot be read"},
		"a token of two words":                {path: "/scopes", guard: guard, header: bearer("all none"), want: 401, detail: "cannot be read"},
		"a scheme in lower case":              {path: "/scopes", guard: guard, header: http.Header{"Authorization": {"bearer all"}}, want: 200},
		"blanks before the token":             {path: "/scopes", guard: guard, header: bearer("  all"), want: 200},
		"the owner of the token is unknown":   {path: "/scopes", guard: rights{err: errors.New("no answer")}, header: bearer("all"), want: 503, detail: "cannot find out whose the bearer token is: no answer"},
		"the rights of the owner are unknown": {path: "/scopes", guard: undecided{guard}, header: bearer("all"), want: 503, detail: `cannot find out what user "caller-all" may do: no answer`},
	}
	for path := range targets {
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
		all[path+" with right"] = request{path: path, guard: guard, header: bearer("all"), want: fine}
		if !open {
			all[path+" after too many tokens"] = request{path: path, guard: rights{err: fmt.Errorf("%w: of you", ErrTooMany)}, header: bearer("all"), want: 429, detail: "too many requests: of you"}
		}
	}
	return all
}

// TestAccessThatRequestsNeed asserts that the server asks for exactly one access, whether the object exists or not, and that it does nothing for a
// caller without it.
func TestAccessThatRequestsNeed(t *testing.T) {
	type needed struct {
		access Access
		detail string
	}
	list, one := needed{Access{Verb: "list", Namespace: "telco"}, `list HealthScopes in namespace "telco"`}, needed{Access{Verb: "get", Namespace: "telco", Name: "web"}, `get HealthScope "web" in namespace "telco"`}
	everywhere := needed{Access{Verb: "list"}, "list HealthScopes in all namespaces; with the parameter namespace those of one are listed"}
	none := needed{Access{Verb: "get", Namespace: "telco", Name: "nope"}, `get HealthScope "nope" in namespace "telco"`}
	tests := map[string]needed{
		"/scopes":                       everywhere,
		"/scopes?namespace=telco":       list,
		"/scopes/vfw":                   {Access{Verb: "get", Namespace: "default", Name: "vfw"}, `get HealthScope "vfw" in namespace "default"`},
		"/scopes/telco/web":             one,
		"/scopes/telco/nope":            none,
		"/scopes/telco/nope?watch=true": none,
		"/v1alpha1/scopes":              everywhere,
		"/v1alpha1/scopes?health=healthy&namespace=telco": list,
		"/v1alpha1/scopes/telco/web":                      one,
		networkURL + "?health=true":                       {Access{Verb: "get", Path: networkURL}, `get the URL "` + networkURL + `"`},
	}
	for verb, urls := range map[string][]string{
		"get":    {autumnURL, springURL, "/v1/instance/gentle-fox/status", "/v1/instance/odd-fox/status"},
		"deploy": {groupURL + "/instantiate", groupURL + "/terminate", groupURL + "/stop", groupURL + "/update", groupURL + "/rollback"},
	} {
		for _, target := range urls {
			tests[target] = needed{Access{Verb: verb, Path: target}, verb + ` the URL "` + target + `"`}
		}
	}
	for target, want := range tests {
		t.Run(target, func(t *testing.T) {
			var asked []Access
			d := &deployments{}
			guard := rights{may: map[string][]Access{"none": {{Verb: "get", Path: groupURL + "/stop"}}}, asked: &asked}
			h := NewHandler(Options{Scopes: manyScopes(), Documents: manyDocuments(t), Deployments: d, Guard: guard})
			method := http.MethodGet
			if want.access.Verb == "deploy" {
				method = http.MethodPost
			}
			got := send(t.Context(), h, method, target, bearer("none"), rollbackBody)
			checkProblem(t, got.Body.Bytes(), http.StatusForbidden, `user "caller-none" may not `+want.detail)
			if diff := cmp.Diff([]Access{want.access}, asked); diff != "" || len(d.asked) > 0 {
				t.Errorf("done: %q; asked for (-want +got):\n%s", d.asked, diff)
			}
		})
	}
}
