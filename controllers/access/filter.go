package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/healthscope/healthscope/healthscope/api"
)

// retryAfterSeconds is the value of the header Retry-After for temporary errors.
const retryAfterSeconds = "5"

// Details of the problem documents for rejected requests.
const (
	detailNoToken  = `there is no bearer token; send "Authorization: Bearer <token>" with a token of a Kubernetes user or ServiceAccount`
	detailBadToken = "the bearer token is not accepted: it may have expired, or be of another cluster"
	detailUnknown  = "the Kubernetes API server cannot be asked who you are and what you may do; the log says why"
)

// MetricsFilter returns a filter that admits callers of a metrics server whose bearer token gives the right to get the path, as a
// nonResourceURL. It is a metricsserver.Options.FilterProvider.
func MetricsFilter(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	guard, err := NewGuard(config, client)
	if err != nil {
		return nil, err
	}
	return func(logger logr.Logger, next http.Handler) (http.Handler, error) {
		return withAuthorization(guard, logger, next), nil
	}, nil
}

// withAuthorization returns a handler that answers 401 to callers that are not authenticated, 403 to those without the right, 429 to
// sources with too many rejected tokens, and 503 when the API server does not answer, each with a problem document. It passes other
// requests to next.
func withAuthorization(guard api.Guard, logger logr.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
			writeProblem(w, r, http.StatusUnauthorized, detailNoToken)
			return
		}
		caller, known, err := guard.Authenticate(r, token)
		allowed := false
		if err == nil && known {
			// All that is served is for reading, whatever the method: profilers POST their queries.
			allowed, err = guard.Authorize(r.Context(), caller, api.Access{Verb: "get", Path: r.URL.Path})
		}
		switch {
		case r.Context().Err() != nil: // The caller has disconnected: there is no failure to report.
		case errors.Is(err, api.ErrTooMany):
			w.Header().Set("Retry-After", retryAfterSeconds)
			writeProblem(w, r, http.StatusTooManyRequests, err.Error())
		case errors.Is(err, api.ErrBusy):
			w.Header().Set("Retry-After", retryAfterSeconds)
			writeProblem(w, r, http.StatusServiceUnavailable, err.Error())
		case err != nil:
			logger.Error(err, "Cannot find out who a caller is and what they may do", "path", r.URL.Path)
			writeProblem(w, r, http.StatusServiceUnavailable, detailUnknown)
		case !known:
			writeProblem(w, r, http.StatusUnauthorized, detailBadToken)
		case !allowed:
			writeProblem(w, r, http.StatusForbidden, fmt.Sprintf("user %q may not get the URL %q", caller.Name, r.URL.Path))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// writeProblem answers with a problem document of the form that the status REST server uses.
func writeProblem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	body, err := json.Marshal(api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Instance: r.URL.EscapedPath()})
	if err != nil {
		body = nil // The status is enough.
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="healthscope"`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // The caller may have disconnected.
}
