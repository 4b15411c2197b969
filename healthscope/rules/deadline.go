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
func (o *object) applyDeadlineAnnotation() {
	text := o.annotation(AnnotationProgressDeadline)
	if text == "" {
		return
	}
	limit, err := time.ParseDuration(text)
	if err == nil && limit >= time.Second {
		o.ProgressDeadline, o.Timed = limit, false
		return
	}
	problem := fmt.Sprintf("annotation %s is %q, which is no duration of at least 1s, such as 90s or 30m", AnnotationProgressDeadline, healthscope.Cut(text, 32))
	o.Message = join("; ", problem, o.Message)
	if o.State == healthscope.Ready {
		o.Reason, o.Warning = cmp.Or(o.Reason, healthscope.ReasonInvalidDeadline), true
	}
}
