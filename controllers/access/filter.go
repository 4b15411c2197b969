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

// retrySeconds is the header Retry-After of what may be answered otherwise a little later.
const retrySeconds = "5"

// Refusals of a request, as callers read them.
const (
	detailNoToken  = `there is no bearer token; send "Authorization: Bearer <token>" with a token of a Kubernetes user or ServiceAccount`
	detailBadToken = "the bearer token is not accepted: it may have expired, or be of another cluster"
	detailUnknown  = "the Kubernetes API server cannot be asked who you are and what you may do; the log says why"
)

// MetricsFilter returns what lets those callers of a metrics server pass whose
// bearer token gives the right to get the path, as a nonResourceURL. It has the form of metricsserver.Options.FilterProvider.
func MetricsFilter(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	guard, err := NewGuard(config, client)
	if err != nil {
		return nil, err
	}
	return func(logger logr.Logger, next http.Handler) (http.Handler, error) {
		return guarded(guard, logger, next), nil
	}, nil
}

// guarded answers 401 to callers that are not known, 403 to those without the right, 503 when the API server does not say, each with a problem document, and leaves the rest to next.
func guarded(guard api.Guard, logger logr.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
			refuse(w, r, http.StatusUnauthorized, detailNoToken)
			return
		}
		caller, known, err := guard.Authenticate(r, token)
		allowed := false
		if err == nil && known {
			// All that is served is for reading, by whatever method: profilers POST what they want to know.
			allowed, err = guard.Authorize(r.Context(), caller, api.Access{Verb: "get", Path: r.URL.Path})
		}
		switch {
		case r.Context().Err() != nil: // The caller has gone, which is no failure, and needs no answer.
		case errors.Is(err, api.ErrTooMany):
			w.Header().Set("Retry-After", retrySeconds)
			refuse(w, r, http.StatusTooManyRequests, err.Error())
		case errors.Is(err, api.ErrBusy):
			w.Header().Set("Retry-After", retrySeconds)
			refuse(w, r, http.StatusServiceUnavailable, err.Error())
		case err != nil:
			logger.Error(err, "Cannot find out who a caller is and what they may do", "path", r.URL.Path)
			refuse(w, r, http.StatusServiceUnavailable, detailUnknown)
		case !known:
			refuse(w, r, http.StatusUnauthorized, detailBadToken)
		case !allowed:
			refuse(w, r, http.StatusForbidden, fmt.Sprintf("user %q may not get the URL %q", caller.Name, r.URL.Path))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refuse answers with a problem document, as the status REST server does.
func refuse(w http.ResponseWriter, r *http.Request, status int, detail string) {
	body, err := json.Marshal(api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Instance: r.URL.EscapedPath()})
	if err != nil {
		body = nil // The status says it too.
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="healthscope"`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // A caller that has gone needs no answer.
}
