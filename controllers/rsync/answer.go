package rsync

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/healthscope/healthscope/healthscope"
)

// answerKind classifies the answer of a cluster to a request.
type answerKind int

const (
	// acknowledged means that the API server has carried out the request.
	acknowledged answerKind = iota
	// refused means that the API server, or this program because of the context, does not allow the request. A retry is refused
	// too, unless something has changed.
	refused
	// unanswered means that there is no definite answer, so the step is retried.
	unanswered
)

// String returns the kind as a value of the label of the metrics.
func (k answerKind) String() string { return [...]string{"acknowledged", "refused", "unanswered"}[k] }

// answer is the answer of a cluster to a request, with the error if the cluster did not acknowledge it.
type answer struct {
	kind answerKind
	err  error
}

// problem returns the reason why a step was not acknowledged, as a text that is safe to show.
func (a answer) problem() string { return healthscope.Clean(a.err.Error()) }

// refusalError is a refusal by this program, for example because the context requests something that is not allowed or not
// possible.
type refusalError struct{ error }

// isOwnRefusal reports whether an error is a refusalError.
func isOwnRefusal(err error) bool {
	_, is := errors.AsType[refusalError](err)
	return is
}

// notServedError means that an API server serves no version of a kind, so no object of the kind exists.
type notServedError struct{ error }

// Unwrap returns the error of the lookup.
func (e notServedError) Unwrap() error { return e.error }

// isNotServed reports whether an error is a notServedError.
func isNotServed(err error) bool {
	_, is := errors.AsType[notServedError](err)
	return is
}

// answerOf classifies the result of a request. Only a decision of the API server or of this program is a refusal. An error because
// of load, a fault or failed authentication is not, nor is a missing response.
func answerOf(err error) answer {
	switch {
	case err == nil:
		return answer{kind: acknowledged}
	case isRefusal(err):
		return answer{refused, err}
	default:
		return answer{unanswered, err}
	}
}

func isRefusal(err error) bool {
	if isOwnRefusal(err) || meta.IsNoMatchError(err) {
		return true
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		if apierrors.IsUnauthorized(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsGone(err) {
			return false
		}
		code := status.Status().Code
		return code >= 400 && code < 500 || isMalformed(err)
	}
	return false
}

// isMalformed reports whether an error means that the API server cannot read an object as its kind. The API server responds with an
// internal error then. It does the same when a conversion webhook does not respond, which is not a refusal.
func isMalformed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "failed to create typed patch object") ||
		strings.Contains(text, "failed to convert new object") && !strings.Contains(text, "webhook")
}
