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
//  7. "kstatus", for the kinds of Kubernetes itself;
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
func Explain(object *unstructured.Unstructured, options Options) (healthscope.Result, string) {
	if object == nil || len(object.Object) == 0 {
		return healthscope.Result{State: healthscope.Unknown, Reason: healthscope.ReasonInvalidObject, Message: "the object is empty"}, ruleNone
	}
	o, result := parseObject(object.Object)
	rule := cmp.Or(result.Kind, ruleNone)
	judge := rulesByKind[groupKind{result.Group, result.Kind}]
	if judge != nil {
		judge(o, &result)
	}
	name, matched := judgeByUser(o, &result, options.User)
	switch {
	case o.deleting:
		rule = ruleDeletion
		o.override(&result, healthscope.Terminating, healthscope.ReasonDeleting, o.deletion())
	case matched:
		rule = ruleUserPrefix + name
	case o.problem != "":
		o.invalid(&result)
	case o.stale() && (judge != nil || !isSuspended(o)):
		rule = ruleGeneration
		o.override(&result, healthscope.Pending, healthscope.ReasonStaleGeneration, "the status is older than the spec")
	case judge == nil:
		rule = judgeByConvention(o, &result)
		if o.problem != "" {
			o.invalid(&result)
		}
	}
	if result.State != healthscope.Pending || result.Serving { // Nothing else is timed.
		result.Progress, result.Timed = nil, false
	}
	o.applyDeadlineAnnotation(&result)
	result.Message = boundMessage(result.Message)
	result.Clean()
	return result, rule
}

// judgeByUser lets the user's rules judge an object that is not being deleted.
func judgeByUser(o *object, result *healthscope.Result, user UserRules) (name string, matched bool) {
	if user == nil || o.deleting {
		return "", false
	}
	apiVersion := result.Version
	if result.Group != "" {
		apiVersion = result.Group + "/" + result.Version
	}
	if !user.Covers(apiVersion, result.Kind) {
		return "", false
	}
	userResult, name, matched := user.Evaluate(o.root)
	if matched {
		result.State, result.Reason, result.Message = userResult.State, userResult.Reason, userResult.Message
		result.Serving, result.Suspended, result.Warning, result.Timed = userResult.Serving, userResult.Suspended, userResult.Warning, false
	}
	return name, matched
}

// judgeByConvention judges an object of a kind without a rule, and returns the name of the rule that decided.
func judgeByConvention(o *object, result *healthscope.Result) string {
	if rule := judgeByConditions(o, result); rule != "" {
		if result.State == healthscope.Ready && result.Suspended {
			result.Reason, result.Message = healthscope.ReasonSuspended, "it is suspended"
		}
		return ruleOrEvidence(o, result, rule)
	}
	o.requireConditions()
	if builtIn(result.Group) {
		judgeByKstatus(o, result)
		return ruleOrEvidence(o, result, ruleKstatus)
	}
	judgeWithoutRule(o, result)
	return ruleOrEvidence(o, result, ruleNone)
}

// ruleOrEvidence returns the name of the rule that decided: the given one, or ruleEvidence when there is evidence against its result.
func ruleOrEvidence(o *object, result *healthscope.Result, rule string) string {
	if applyEvidence(o, result) {
		return ruleEvidence
	}
	return rule
}

// override replaces the result of a rule by a result that takes precedence.
func (o *object) override(result *healthscope.Result, state healthscope.State, reason healthscope.Reason, message string) {
	result.State, result.Reason, result.Message = state, reason, message
	result.Warning, result.Timed = false, false
}

// invalid sets the result of an object that cannot be read. It drops the values that were read, because they are not reliable.
func (o *object) invalid(result *healthscope.Result) {
	o.override(result, healthscope.Unknown, healthscope.ReasonInvalidObject, o.problem)
	result.Serving, result.Suspended, result.Replicas, result.Progress = false, false, nil, nil
}

// deletion returns the message for an object that is being deleted. It names what blocks the deletion.
func (o *object) deletion() string {
	text := "the object is being deleted"
	if len(o.finalizers) > 0 {
		text += ", finalizers that remain: " + strings.Join(o.finalizers, ", ")
	}
	return join("; ", text, o.deletionBlocker)
}
