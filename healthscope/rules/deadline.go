package rules

import (
	"cmp"
	"fmt"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// AnnotationProgressDeadline is the annotation that sets how long an object of any kind may be Pending without progress.
const AnnotationProgressDeadline = "healthscope.core.oam.dev/progress-deadline"

// applyDeadlineAnnotation sets the deadline from the object's annotation. It takes precedence over the deadline of the object's spec, and over
// Kubernetes' judgement of a rollout. An annotation that cannot be parsed has no effect, and the message reports it.
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
