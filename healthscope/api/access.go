package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
)

// authenticateChallenge is the header WWW-Authenticate of an answer to a caller who is not known.
const authenticateChallenge = `Bearer realm="healthscope"`

// Refusals of what is too much at once, which is no failure of the server. A Guard's errors may be of their kind.
var (
	// ErrBusy is answered with 503: there is too much of all callers.
	ErrBusy = errors.New("busy")
	// ErrTooMany is answered with 429: there is too much of this caller.
	ErrTooMany = errors.New("too many requests")
)

// Guard finds out who callers are, and what they may ask for. Its errors mean that it is not known; they are answered with 503.
type Guard interface {
	// Authenticate returns who the bearer token of a request belongs to; false when the token is not accepted, or not any more. What happens at
	// once, and how many tokens a source may try, is for the Guard to bound: nothing else does before the caller is known.
	Authenticate(r *http.Request, token string) (caller Caller, ok bool, err error)
	// Authorize reports whether a caller may do something.
	Authorize(ctx context.Context, caller Caller, access Access) (bool, error)
}

// Caller is the user who has sent a request, as in user.Info of Kubernetes.
type Caller struct {
	// Name and UID are those of the user.
	Name, UID string
	// Groups are the groups of the user.
	Groups []string
	// Extra is what else the authenticator passes to the authorizer.
	Extra map[string][]string
}

// Access is what a caller asks for, as Kubernetes knows rights: on HealthScopes, or on a URL of this server.
type Access struct {
	// Verb is get, list or deploy.
	Verb string
	// Namespace and Name are those of the HealthScope; both may be empty, which means all.
	Namespace, Name string
	// Path is the URL's path, which is no resource of Kubernetes; empty for HealthScopes.
	Path string
}

// String says for people what is asked for.
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

// authenticate returns the caller of a request. It returns no caller for anonymous routes and without a Guard.
func (h *handler) authenticate(ctx context.Context, rt route, r *http.Request) (Caller, error) {
	switch {
	case rt.access == nil:
		return Caller{}, nil
	case h.guard == nil && rt.changes(): // Any page in a browser on the same machine can send it.
		return Caller{}, statusErrorf(http.StatusForbidden, "without a token nothing can be changed; send one to the address in api.bindAddress of the server's configuration")
	case h.guard == nil:
		return Caller{}, nil
	}
	token, err := bearerToken(r)
	if err != nil {
		return Caller{}, err
	}
	caller, ok, err := h.guard.Authenticate(r.WithContext(ctx), token)
	if errors.Is(err, ErrTooMany) {
		return Caller{}, statusErrorf(http.StatusTooManyRequests, "%w", err)
	}
	if err != nil {
		return Caller{}, statusErrorf(http.StatusServiceUnavailable, "cannot find out whose the bearer token is: %w", err)
	}
	if !ok {
		return Caller{}, statusErrorf(http.StatusUnauthorized, "the bearer token is not accepted: it may have expired, or be of another cluster; send one that the hub's Kubernetes API server accepts")
	}
	return caller, nil
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

// authorize refuses what the caller may not ask for. It is done before anything is looked up, so that an answer does not show what exists.
func (h *handler) authorize(ctx context.Context, rt route, caller Caller, access Access) error {
	if h.guard == nil || rt.access == nil {
		return nil
	}
	allowed, err := h.guard.Authorize(ctx, caller, access)
	if err != nil {
		return statusErrorf(http.StatusServiceUnavailable, "cannot find out what user %s may do: %w", quote(caller.Name), err)
	}
	if !allowed {
		return statusErrorf(http.StatusForbidden, "user %s may not %s", quote(caller.Name), access)
	}
	return nil
}

// checkAccess returns why a request would not be answered now that was answered before.
func (h *handler) checkAccess(ctx context.Context, rt route, r *http.Request, access Access) error {
	caller, err := h.authenticate(ctx, rt, r)
	if err != nil {
		return err
	}
	return h.authorize(ctx, rt, caller, access)
}
