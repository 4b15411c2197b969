package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// counted are what operators count: fields such as readyReplicas, availableNodes or membersReady.
var counted = []string{
	"Replicas", "Instances", "Nodes", "Members", "Pods", "Brokers", "Workers", "Servers", "Machines", "Masters", "Shards", "Agents", "Components", "Daemons",
}

// counts looks for fewer that are ready than are wanted in one object within the status. spec is that of the whole object, for the status itself.
func (s *search) counts(object, spec map[string]any, path string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		what, bad := countName(name)
		if what == "" {
			continue
		}
		n, ok := number(object[name])
		if !ok || n < 0 {
			continue
		}
		if bad {
			if n > 0 {
				s.note(evidence{state: healthscope.Pending, reason: healthscope.ReasonReplicasNotReady, message: fmt.Sprintf("%s.%s is %d", path, name, n)})
			}
			continue
		}
		if wanted, field := wantedOf(what, object, spec, path); field != "" && n < wanted {
			s.note(evidence{
				state: healthscope.Pending, reason: healthscope.ReasonReplicasNotReady,
				message: fmt.Sprintf("%s.%s is %d, %s is %d", path, name, n, field, wanted),
			})
		}
	}
}

// number reads a count, which is a number here: a string may be anything.
func number(value any) (int64, bool) {
	if _, isText := value.(string); isText {
		return 0, false
	}
	return wholeNumber(value)
}

// countName returns what a field counts that is ready, such as Replicas, or "ready" for a field of that name; "" for a field
// that counts nothing of the kind. bad is true for a field that counts what is not ready.
func countName(name string) (what string, bad bool) {
	switch name {
	case "ready", "numberReady", "numReady", "readyCount":
		return "ready", false
	}
	if !slices.ContainsFunc(counted, func(what string) bool {
		return strings.HasSuffix(name, what) || strings.HasPrefix(name, strings.ToLower(what[:1])+what[1:])
	}) {
		return "", false
	}
	for _, prefix := range [...]string{"ready", "available", "healthy"} {
		if what, ok := strings.CutPrefix(name, prefix); ok {
			return what, false
		}
	}
	for _, prefix := range [...]string{"unavailable", "unready", "notReady", "unhealthy", "failed"} {
		if what, ok := strings.CutPrefix(name, prefix); ok {
			return what, true
		}
	}
	for _, suffix := range [...]string{"Ready", "Available"} {
		if what, ok := strings.CutSuffix(name, suffix); ok {
			return strings.ToUpper(what[:1]) + what[1:], false
		}
	}
	return "", false
}

// wantedOf returns how many are wanted of what is counted, and the field that says so; an empty field when none does. The
// spec goes before the status, which counts what exists, and during a rollout more than is wanted.
func wantedOf(what string, object, spec map[string]any, path string) (wanted int64, field string) {
	lower := strings.ToLower(what[:1]) + what[1:]
	if what == "ready" {
		return firstNumber(object, path, "size", "total", "desired", "replicas", "desiredNumberScheduled", "expected")
	}
	if wanted, field = firstNumber(spec, "spec", lower); field != "" {
		return wanted, field
	}
	if wanted, field = firstNumber(object, path, "desired"+what, "expected"+what); field != "" {
		return wanted, field
	}
	if what == "Replicas" || what == "Instances" || what == "Nodes" || what == "Members" || what == "Pods" {
		if wanted, field = firstNumber(spec, "spec", "size", "replicas", "instances", "count"); field != "" {
			return wanted, field
		}
		if wanted, field = nodeSets(spec); field != "" {
			return wanted, field
		}
	}
	return firstNumber(object, path, lower, "total"+what, "size")
}

// nodeSets returns how many nodes the kinds of Elastic want, that have them in sets.
func nodeSets(spec map[string]any) (wanted int64, field string) {
	sets, _ := spec["nodeSets"].([]any)
	for _, item := range sets {
		set, _ := item.(map[string]any)
		if n, ok := number(set["count"]); ok && n >= 0 {
			wanted, field = wanted+min(n, 1<<31), "spec.nodeSets"
		}
	}
	return wanted, field
}

// firstNumber returns the first of some fields that is there and is a number.
func firstNumber(object map[string]any, path string, names ...string) (n int64, field string) {
	for _, name := range names {
		if n, ok := number(object[name]); ok && n >= 0 {
			return n, path + "." + name
		}
	}
	return 0, ""
}

// fraction looks at a text such as 2/3 in a field that says how many are ready.
func (s *search) fraction(name, at, text string) {
	lower := strings.ToLower(name)
	if !strings.Contains(lower, "ready") && !strings.Contains(lower, "replicas") && !strings.Contains(lower, "available") {
		return
	}
	left, right, _ := strings.Cut(text, "/")
	n, err := strconv.ParseUint(strings.TrimSpace(left), 10, 31)
	if err != nil {
		return
	}
	wanted, err := strconv.ParseUint(strings.TrimSpace(right), 10, 31)
	if err != nil || n >= wanted {
		return
	}
	s.note(evidence{state: healthscope.Pending, reason: healthscope.ReasonReplicasNotReady, message: at + " is " + text})
}
