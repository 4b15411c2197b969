package observe

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrNotServed is returned by InformerOptions.Open when the API server has confirmed that it does not serve the resource.
var ErrNotServed = errors.New("the cluster does not serve it")

// ErrUnsuitable is returned by InformerOptions.Open when the API server serves the kind, but its resource cannot be read from the place.
var ErrUnsuitable = errors.New("it cannot be read from here")

// Classify returns the event for an error of a list or of opening a watch: Expired, Refused with its reason, or Failed.
func Classify(err error) (EventKind, Reason) {
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return Expired, ""
	case apierrors.IsForbidden(err):
		return Refused, Forbidden
	case apierrors.IsUnauthorized(err):
		return Refused, Unauthorized
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), errors.Is(err, ErrNotServed), errors.Is(err, ErrUnsuitable):
		return Refused, NotServed
	}
	return Failed, NoAnswer
}

// isAnswer reports whether an error is an answer of the API server.
func isAnswer(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status)
}

// isUnsupported reports whether an API server rejects the options of a streaming list rather than the client.
func isUnsupported(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotAcceptable(err)
}
