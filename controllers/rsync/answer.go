package rsync

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/healthscope/healthscope/healthscope"
)

// answerKind is how a cluster answered a request.
type answerKind int

const (
	// acknowledged means that the API server has done what was asked.
	acknowledged answerKind = iota
	// refused means that the API server, or this program on account of the context, does not allow the request. A retry would be refused too.
	refused
	// unanswered means that there is no decisive answer: the step is taken again.
	unanswered
)

// String returns the kind as metrics name it.
func (k answerKind) String() string { return [...]string{"acknowledged", "refused", "unanswered"}[k] }

// answer is what a cluster answered, and the error if it did not acknowledge.
type answer struct {
	kind answerKind
	err  error
}

// problem returns why a step was not acknowledged, as text for people.
func (a answer) problem() string { return healthscope.Clean(a.err.Error()) }

// refusalError is a refusal by this program: the context asks for something that is not allowed or not possible.
type refusalError struct{ error }

// isOwnRefusal reports whether an error is a refusalError.
func isOwnRefusal(err error) bool {
	_, is := errors.AsType[refusalError](err)
	return is
}

// notServedError says that an API server serves no version of a kind, so that no object of it exists.
type notServedError struct{ error }

// Unwrap returns the error of the lookup.
func (e notServedError) Unwrap() error { return e.error }

// isNotServed reports whether an error is a notServedError.
func isNotServed(err error) bool {
	_, is := errors.AsType[notServedError](err)
	return is
}

// answerOf classifies the result of a request. Only a decision of the API server is a refusal. An error because of load, a
// fault or failed authentication, and no response at all, are not.
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

// isMalformed reports whether the API server cannot read an object as its kind. It answers this with an internal error, as it
// does when a conversion webhook does not answer, which is not a refusal.
func isMalformed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "failed to create typed patch object") ||
		strings.Contains(text, "failed to convert new object") && !strings.Contains(text, "webhook")
}
