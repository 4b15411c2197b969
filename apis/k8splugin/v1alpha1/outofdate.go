package v1alpha1

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationOutOfDate marks a bundle of another monitor as out of date: its objects have changed, and that monitor has not
// written the status since then. The value is "WRITTEN/SINCE", two times in RFC 3339. It applies to the write at WRITTEN only,
// and has no meaning after a later write.
const AnnotationOutOfDate = "healthscope.core.oam.dev/out-of-date"

// OutOfDate is the value of AnnotationOutOfDate: the status of a bundle does not show the current state of its objects.
//
// +kubebuilder:object:generate=false
type OutOfDate struct {
	// Written is the time at which the outdated status was written, by the API server's clock.
	Written time.Time
	// Since is the time since which the status is out of date.
	Since time.Time
}

// String returns the value of the annotation.
func (o OutOfDate) String() string {
	return o.Written.UTC().Format(time.RFC3339) + "/" + o.Since.UTC().Format(time.RFC3339)
}

// ParseOutOfDate parses the value of the annotation.
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

// LastWrite returns the time of the last write of an object's status, by the API server's clock, and the field manager that wrote
// it. It reads the managed fields of the object. The results are zero and empty if the managed fields do not have them.
func LastWrite(entries []metav1.ManagedFieldsEntry) (at time.Time, manager string) {
	for _, entry := range entries {
		if entry.Subresource == "status" && entry.Time != nil && !entry.Time.Time.Before(at) {
			at, manager = entry.Time.Time, entry.Manager
		}
	}
	return at, manager
}
