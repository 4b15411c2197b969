package rsync

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/healthscope/healthscope/healthscope/deploy"
)

// refusalError is a refusal by this program, for example because the context requests something that is not allowed or not
// possible.
type refusalError struct{ error }

// notServedError means that an API server serves no version of a kind, so no object of the kind exists.
type notServedError struct{ error }

// Unwrap returns the error of the lookup.
func (e notServedError) Unwrap() error { return e.error }

// is reports whether an error is, or wraps, an E.
func is[E error](err error) bool {
	_, found := errors.AsType[E](err)
	return found
}

// outcomeOf classifies the result of a request. Only a decision of the API server or of this program is a refusal. An error because
// of load, a fault or failed authentication is not, nor is a missing response.
func outcomeOf(err error) deploy.Outcome {
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return deploy.Acknowledged
	case is[refusalError](err), meta.IsNoMatchError(err):
		return deploy.Refused
	case !errors.As(err, &status), apierrors.IsUnauthorized(err), apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err), apierrors.IsGone(err):
		return deploy.Unanswered
	}
	if code := status.Status().Code; code >= 400 && code < 500 || isMalformed(err) {
		return deploy.Refused
	}
	return deploy.Unanswered
}

// isMalformed reports whether an error means that the API server cannot read an object as its kind. The API server responds with an
// internal error then. It does the same when a conversion webhook does not respond, which is not a refusal.
func isMalformed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "failed to create typed patch object") ||
		strings.Contains(text, "failed to convert new object") && !strings.Contains(text, "webhook")
}
