package v1alpha1

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationOutOfDate says on a bundle that another monitor fills that its objects have changed, and that monitor has not
// written it: "WRITTEN/SINCE", two times as in RFC 3339. It is of one write only, and says nothing once there is a later one.
const AnnotationOutOfDate = "healthscope.core.oam.dev/out-of-date"

// OutOfDate says of a bundle that it does not tell what its objects are like.
//
// +kubebuilder:object:generate=false
type OutOfDate struct {
	// Written is when the status was written that is out of date, by the API server's clock.
	Written time.Time
	// Since is from when on it is.
	Since time.Time
}

// String returns the value of the annotation.
func (o OutOfDate) String() string {
	return o.Written.UTC().Format(time.RFC3339) + "/" + o.Since.UTC().Format(time.RFC3339)
}

// ParseOutOfDate reads the value of the annotation.
func ParseOutOfDate(value string) (OutOfDate, error) {
	written, since, _ := strings.Cut(value, "/")
	var o OutOfDate
	var err error
	if o.Written, err = time.Parse(time.RFC3339, written); err == nil {
		o.Since, err = time.Parse(time.RFC3339, since)
	}
	if err != nil {
		return OutOfDate{}, fmt.Errorf("cannot read annotation %q, which is to be two times such as 2026-03-01T12:00:00Z/2026-03-01T12:00:20Z: %w", AnnotationOutOfDate, err)
	}
	return o, nil
}

// LastWrite returns when the status of an object was written last, by the API server's clock, and by whom, as its managed
// fields tell; zero and empty when they do not.
func LastWrite(entries []metav1.ManagedFieldsEntry) (at time.Time, manager string) {
	for _, entry := range entries {
		if entry.Subresource == "status" && entry.Time != nil && !entry.Time.Time.Before(at) {
			at, manager = entry.Time.Time, entry.Manager
		}
	}
	return at, manager
}
