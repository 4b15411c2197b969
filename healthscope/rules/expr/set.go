package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/healthscope/healthscope/healthscope"
)

// maxText is the maximum length of a quoted expression or error in a message, in bytes.
const maxText = 160

// Set is a set of compiled rules. It implements rules.UserRules, and is safe for use by many goroutines.
type Set struct{ byKind map[groupKind][]*check }

// groupKind identifies a kind in its API group.
type groupKind struct{ group, kind string }

// check is one rule.
type check struct {
	name string
	// object and namespace are the name and namespace of the objects that the rule applies to; empty for any.
	object, namespace string
	labels            labels.Selector
	expressions       []expression
}

// expression is one expression of a rule, with the result that it gives when it is true.
type expression struct {
	field, text string
	state       healthscope.State
	reason      healthscope.Reason
	// readsStatus is true when the expression uses the object's status.
	readsStatus bool
	program     cel.Program
}

// Covers reports whether any rule applies to a kind, in any version.
func (s *Set) Covers(apiVersion, kind string) bool {
	return len(s.byKind[groupKind{groupOf(apiVersion), kind}]) > 0
}

// Evaluate judges an object, given as the JSON of the API, by the first rule that matches it; matched is false when
// no rule does. It does not change the object. As in Flux, an object whose status belongs to another generation is Pending without any
// evaluation. Otherwise inProgress, failed and current are evaluated in this order, and an object for which none is true is Pending. When the
// evaluation fails, the result is Unknown, or Pending when the expression reads a status that has not been written yet.
func (s *Set) Evaluate(object map[string]any) (result healthscope.Result, rule string, matched bool) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	for _, c := range s.byKind[groupKind{groupOf(apiVersion), kind}] {
		if c.matches(metadata) {
			return c.evaluate(visible(object, metadata)), c.name, true
		}
	}
	return healthscope.Result{}, "", false
}

// matches reports whether the rule applies to an object with the given metadata.
func (c *check) matches(metadata map[string]any) bool {
	if c.object != "" && metadata["name"] != c.object || c.namespace != "" && metadata["namespace"] != c.namespace {
		return false
	}
	if c.labels.Empty() {
		return true
	}
	objectLabels, _ := metadata["labels"].(map[string]any)
	set := make(labels.Set, len(objectLabels))
	for key, value := range objectLabels {
		set[key], _ = value.(string)
	}
	return c.labels.Matches(set)
}

// evaluate judges an object by the rule.
func (c *check) evaluate(object map[string]any) healthscope.Result {
	status, _ := object["status"].(map[string]any)
	if metadata, _ := object["metadata"].(map[string]any); stale(metadata["generation"], status["observedGeneration"]) {
		return pending(healthscope.ReasonStaleGeneration, "the status is of another generation than the spec")
	}
	for i := range c.expressions {
		q := &c.expressions[i]
		isTrue, err := q.evaluate(object)
		switch {
		case err != nil && q.readsStatus && len(status) == 0 && !isCostLimitExceeded(err):
			return pending(healthscope.ReasonNotObserved, fmt.Sprintf("health check %q waits for a status: %s: %s", c.name, q.field, oneLine(err.Error())))
		case err != nil:
			return c.unknown(q, err)
		case isTrue:
			return c.resultOf(q)
		}
	}
	return pending(healthscope.ReasonHealthCheckNotCurrent,
		fmt.Sprintf("health check %q: current is false: %s", c.name, oneLine(c.expressions[len(c.expressions)-1].text)))
}

// resultOf returns the result of an expression that is true.
func (c *check) resultOf(q *expression) healthscope.Result {
	r := healthscope.Result{State: q.state, Reason: q.reason}
	if q.state != healthscope.Ready {
		r.Message = fmt.Sprintf("health check %q: %s is true: %s", c.name, q.field, oneLine(q.text))
	}
	return r
}

// unknown returns the result for an object for which the evaluation of an expression fails.
func (c *check) unknown(q *expression, err error) healthscope.Result {
	if isCostLimitExceeded(err) {
		return healthscope.Result{State: healthscope.Unknown, Reason: healthscope.ReasonHealthCheckTooCostly,
			Message: fmt.Sprintf("health check %q: %s was cut off: it costs more than %d on this object", c.name, q.field, CostLimit)}
	}
	return healthscope.Result{State: healthscope.Unknown, Reason: healthscope.ReasonHealthCheckError,
		Message: fmt.Sprintf("health check %q: %s fails on this object: %s", c.name, q.field, oneLine(err.Error()))}
}

func pending(reason healthscope.Reason, message string) healthscope.Result {
	return healthscope.Result{State: healthscope.Pending, Reason: reason, Message: message}
}

// evaluate evaluates the expression on an object.
func (q *expression) evaluate(object map[string]any) (bool, error) {
	value, _, err := q.program.Eval(object)
	if err != nil {
		return false, err
	}
	isTrue, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("it gives a value of type %s; it must give true or false", value.Type().TypeName())
	}
	return bool(isTrue), nil
}

// isCostLimitExceeded reports whether an evaluation was stopped because it exceeded CostLimit.
func isCostLimitExceeded(err error) bool {
	var cancelled interpreter.EvalCancelledError
	return errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded
}

// visible returns the parts of an object that expressions may read.
func visible(object, metadata map[string]any) map[string]any {
	if kind := object["kind"]; object["apiVersion"] != "v1" || kind != "Secret" && kind != "ConfigMap" {
		return object
	}
	shown := make(map[string]any, len(metadata))
	for name, value := range metadata {
		if name != "annotations" && name != "managedFields" {
			shown[name] = value
		}
	}
	return map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": shown}
}

// stale reports whether both generations exist and differ.
func stale(generation, observed any) bool {
	g, hasGeneration := number(generation)
	o, hasObserved := number(observed)
	return hasGeneration && hasObserved && g != o
}

// number reads a number in the forms that JSON decoders produce and other programs write.
func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case string:
		f, err := strconv.ParseFloat(n, 64)
		return f, err == nil
	}
	return 0, false
}

// groupOf returns the API group of an apiVersion; empty for the core group.
func groupOf(apiVersion string) string {
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		return group
	}
	return ""
}

// oneLine returns a text as one line of valid UTF-8 of bounded length.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(healthscope.Clean(text)), " ")
	if len(text) > maxText {
		text = healthscope.Cut(text, maxText) + "…"
	}
	return text
}
