package rules

import (
	"cmp"
	"fmt"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// AnnotationProgressDeadline is the annotation that says how long an object of any kind may be Pending without getting further.
const AnnotationProgressDeadline = "healthscope.core.oam.dev/progress-deadline"

// applyDeadlineAnnotation gives the object the deadline that its annotation says. It goes before the object's own, and before Kubernetes'
// view of a rollout. One that cannot be read counts for nothing, and the message says so.
func (o *object) applyDeadlineAnnotation(result *healthscope.Result) {
	text := o.annotation(AnnotationProgressDeadline)
	if text == "" {
		return
	}
	limit, err := time.ParseDuration(text)
	if err == nil && limit >= time.Second {
		result.ProgressDeadline, result.Timed = limit, false
		return
	}
	problem := fmt.Sprintf("annotation %s is %q, which is no duration of at least 1s, such as 90s or 30m", AnnotationProgressDeadline, healthscope.Cut(text, 32))
	result.Message = join("; ", problem, result.Message)
	if result.State == healthscope.Ready {
		result.Reason, result.Warning = cmp.Or(result.Reason, healthscope.ReasonInvalidDeadline), true
	}
}
