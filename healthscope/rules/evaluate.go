package rules

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
)

// Options are the inputs of a judgement besides the object.
type Options struct {
	// User holds the rules of users; nil when there are none.
	User UserRules
}

// UserRules judge objects before the built-in rules do. They must be pure, and
// safe for use by many goroutines at once.
type UserRules interface {
	// Covers reports whether any rule is for a kind. Explain calls it for every object, so it must be cheap.
	Covers(apiVersion, kind string) bool
	// Evaluate judges an object, given as the JSON of the API, which it must
	// not change. Of the result it returns, State, Reason, Message, Serving,
	// Suspended and Warning count. rule is the bare name of the rule that
	// decided; matched is false when no rule is for this object. It must not
	// fail: what goes wrong within a rule is a result too.
	Evaluate(object map[string]any) (result healthscope.Result, rule string, matched bool)
}

// Names of the rules that are not for one kind. A rule for a kind has the name of the kind, and a user's rule has the prefix "user:".
const (
	ruleDeletion   = "deletion"
	ruleGeneration = "generation"
	ruleConditions = "conditions"
	rulePhase      = "phase"
	ruleEvidence   = "evidence"
	ruleKstatus    = "kstatus"
	ruleNone       = "none"
	ruleUserPrefix = "user:"
)

// maxMessage is the maximum length of a message, in bytes.
const maxMessage = 256

// Evaluate judges one object. See Explain, which also returns the name of the rule.
func Evaluate(object *unstructured.Unstructured, options Options) healthscope.Result {
	result, _ := Explain(object, options)
	return result
}

// Explain judges one object and says which rule decided. The first of these that applies does:
//
//  1. "deletion": an object that is being deleted is Terminating;
//  2. "user:NAME": a rule that a user has written;
//  3. an object that cannot be read as its kind is Unknown, InvalidObject, with a message that names the field;
//  4. "generation": one whose status speaks of an older generation is Pending, StaleGeneration; not a custom resource
//     that is suspended, whose controller does not look at it;
//  5. the rule for its kind, which has the name of the kind: "Deployment";
//  6. "conditions" and "phase": the words of status that most controllers use;
//  7. "kstatus": an object of the other kinds of Kubernetes itself is Ready when it exists, as in kstatus;
//  8. "evidence": what the same status says against a good word of 6, or of an object that 9 knows nothing of;
//  9. "none": nothing is known of such an object, which is Ready, NoStatus,
//     when it has no status, and Unknown, NoRule, otherwise.
//
// It never panics and never fails.
//
// The result names the object, its version, its uid and, from the controlling
// ownerReference, its owner. It has no Cluster and no Labels, which the caller
// sets, and no Since, except for NoStatus: that an object is since its creation. Replicas, Serving, Suspended and ProgressDeadline are also
// given for an object that is deleted or stale, as far as the object shows it.
func Explain(root *unstructured.Unstructured, options Options) (healthscope.Result, string) {
	if root == nil || len(root.Object) == 0 {
		return healthscope.Result{State: healthscope.Unknown, Reason: healthscope.ReasonInvalidObject, Message: "the object is empty"}, ruleNone
	}
	o := parseObject(root.Object)
	rule := cmp.Or(o.Kind, ruleNone)
	judge := rulesByKind[o.groupKind()]
	if judge != nil {
		judge(o)
	}
	name, matched := o.judgeByUser(options.User)
	switch {
	case o.deleting:
		rule = ruleDeletion
		o.override(healthscope.Terminating, healthscope.ReasonDeleting, o.deletion())
	case matched:
		rule = ruleUserPrefix + name
	case o.problem != "":
		o.invalid()
	case o.stale() && (judge != nil || !o.isSuspended()):
		rule = ruleGeneration
		o.override(healthscope.Pending, healthscope.ReasonStaleGeneration, "the status is older than the spec")
	case judge == nil:
		rule = o.judgeByConvention()
		if o.problem != "" {
			o.invalid()
		}
	}
	if o.State != healthscope.Pending || o.Serving { // Nothing else is timed.
		o.Progress, o.Timed = nil, false
	}
	o.applyDeadlineAnnotation()
	o.Message = healthscope.Cut(healthscope.Clean(o.Message), maxMessage)
	o.Clean()
	return o.Result, rule
}

// judgeByUser lets the user's rules judge an object that is not being deleted.
func (o *object) judgeByUser(user UserRules) (name string, matched bool) {
	if user == nil || o.deleting || !user.Covers(stringValue(o.root["apiVersion"]), o.Kind) {
		return "", false
	}
	r, name, matched := user.Evaluate(o.root)
	if matched {
		o.override(r.State, r.Reason, r.Message)
		o.Serving, o.Suspended, o.Warning = r.Serving, r.Suspended, r.Warning
	}
	return name, matched
}

// judgeByConvention judges an object of a kind without a rule, and returns the name of the rule that decided.
func (o *object) judgeByConvention() string {
	rule := o.judgeByConditions()
	switch {
	case rule == "":
		rule = o.judgeByExistence()
	case o.State == healthscope.Ready && o.Suspended:
		o.set(healthscope.Ready, healthscope.ReasonSuspended, "it is suspended")
	}
	if o.applyEvidence() {
		return ruleEvidence
	}
	return rule
}

// deletion returns the message for an object that is being deleted. It names what blocks the deletion.
func (o *object) deletion() string {
	text := "the object is being deleted"
	if len(o.finalizers) > 0 {
		text += ", finalizers that remain: " + strings.Join(o.finalizers, ", ")
	}
	return join("; ", text, o.deletionBlocker)
}
