package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
)

// authenticateChallenge is the header WWW-Authenticate of a response to an unauthenticated caller.
const authenticateChallenge = `Bearer realm="healthscope"`

// Errors of requests that exceed a limit. They are not failures of the server. A Guard may return errors that wrap them.
var (
	// ErrBusy means that all callers together exceed a limit. The response is 503.
	ErrBusy = errors.New("busy")
	// ErrTooMany means that one caller exceeds a limit. The response is 429.
	ErrTooMany = errors.New("too many requests")
)

// Guard authenticates and authorizes callers. Its errors mean that it cannot decide; the response is then 503.
type Guard interface {
	// Authenticate returns the owner of the bearer token of a request; false when the token is not valid, or not any more. The Guard must bound
	// concurrent calls and the number of tokens that a source may try: nothing else does before the caller is known.
	Authenticate(r *http.Request, token string) (caller Caller, ok bool, err error)
	// Authorize reports whether a caller has an access.
	Authorize(ctx context.Context, caller Caller, access Access) (bool, error)
}

// Caller is the user who sent a request, as in user.Info of Kubernetes.
type Caller struct {
	// Name and UID are those of the user.
	Name, UID string
	// Groups are the groups of the user.
	Groups []string
	// Extra holds the other fields that the authenticator passes to the authorizer.
	Extra map[string][]string
}

// Access is an access that a request needs, as in RBAC of Kubernetes: to HealthScopes, or to a URL of this server.
type Access struct {
	// Verb is get, list or deploy.
	Verb string
	// Namespace and Name are those of the HealthScope; both may be empty, which means all.
	Namespace, Name string
	// Path is the path of the URL, a non-resource URL of Kubernetes; empty for HealthScopes.
	Path string
}

// String describes the access for people.
func (a Access) String() string {
	switch {
	case a.Path != "":
		return fmt.Sprintf("%s the URL %s", a.Verb, quote(a.Path))
	case a.Name != "":
		return fmt.Sprintf("%s HealthScope %q in namespace %q", a.Verb, a.Name, a.Namespace)
	case a.Namespace != "":
		return fmt.Sprintf("%s HealthScopes in namespace %q", a.Verb, a.Namespace)
	default:
		return a.Verb + " HealthScopes in all namespaces; with the parameter namespace those of one are listed"
	}
}

// authenticate sets the caller of a request. It sets none without a Guard.
func (h *handler) authenticate(ctx context.Context, q *requestInfo) error {
	switch {
	case h.Guard == nil && q.route.changes(): // Any page in a browser on the same machine can send it.
		return statusErrorf(http.StatusForbidden, "without a token nothing can be changed; send one to the address in api.bindAddress of the server's configuration")
	case h.Guard == nil:
		return nil
	}
	token, err := bearerToken(q.Request)
	if err != nil {
		return err
	}
	var ok bool
	q.caller, ok, err = h.Guard.Authenticate(q.WithContext(ctx), token)
	switch {
	case errors.Is(err, ErrTooMany):
		return statusErrorf(http.StatusTooManyRequests, "%w", err)
	case err != nil:
		return statusErrorf(http.StatusServiceUnavailable, "cannot find out whose the bearer token is: %w", err)
	case !ok:
		return statusErrorf(http.StatusUnauthorized, "the bearer token is not accepted: it may have expired, or be of another cluster; send one that the hub's Kubernetes API server accepts")
	}
	return nil
}

// bearerToken returns the token in the header of a request (RFC 6750 section 2.1).
func bearerToken(r *http.Request) (string, error) {
	headers := r.Header.Values("Authorization")
	switch len(headers) {
	case 0:
		return "", statusErrorf(http.StatusUnauthorized, "there is no header Authorization; send \"Authorization: Bearer <token>\" with a token of a Kubernetes user or ServiceAccount")
	case 1:
	default:
		return "", statusErrorf(http.StatusUnauthorized, "the header Authorization is given %d times; send it once", len(headers))
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsFunc(token, unicode.IsSpace) {
		return "", statusErrorf(http.StatusUnauthorized, "the header Authorization cannot be read; it must be \"Bearer <token>\"")
	}
	return token, nil
}

// authorize returns an error when the caller does not have the access. Call it before any look-up, so that a response does not show what exists.
func (h *handler) authorize(ctx context.Context, q *requestInfo) error {
	if h.Guard == nil || q.route.anonymous() {
		return nil
	}
	allowed, err := h.Guard.Authorize(ctx, q.caller, q.access)
	if err != nil {
		return statusErrorf(http.StatusServiceUnavailable, "cannot find out what user %s may do: %w", quote(q.caller.Name), err)
	}
	if !allowed {
		return statusErrorf(http.StatusForbidden, "user %s may not %s", quote(q.caller.Name), q.access)
	}
	return nil
}
