package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// countedNouns are the nouns in the names of fields with counts, such as readyReplicas, availableNodes or membersReady.
var countedNouns = []string{
	"Replicas", "Instances", "Nodes", "Members", "Pods", "Brokers", "Workers", "Servers", "Machines", "Masters", "Shards", "Agents", "Components", "Daemons",
}

// inspectCounts compares the counts in one object within the status, and records those that show fewer ready parts than desired. spec is the
// spec of the whole object when object is the status itself.
func (s *evidenceSearch) inspectCounts(object, spec map[string]any, path string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		noun, notReady := parseCountName(name)
		if noun == "" {
			continue
		}
		n, ok := number(object[name])
		if !ok || n < 0 {
			continue
		}
		if notReady {
			if n > 0 {
				s.pending(healthscope.ReasonReplicasNotReady, fmt.Sprintf("%s.%s is %d", path, name, n))
			}
			continue
		}
		if desired, field := desiredCount(noun, object, spec, path); field != "" && n < desired {
			s.pending(healthscope.ReasonReplicasNotReady, fmt.Sprintf("%s.%s is %d, %s is %d", path, name, n, field, desired))
		}
	}
}

// number reads a count. It does not accept strings, which may hold anything.
func number(value any) (int64, bool) {
	if _, isText := value.(string); isText {
		return 0, false
	}
	return wholeNumber(value)
}

// parseCountName returns the noun in the name of a field that counts ready parts, such as Replicas in readyReplicas. It returns "ready" for a
// field such as numberReady, which has no noun, and "" for all other fields. notReady is true for a field that counts parts that are not ready.
func parseCountName(name string) (noun string, notReady bool) {
	switch name {
	case "ready", "numberReady", "numReady", "readyCount":
		return "ready", false
	}
	if !slices.ContainsFunc(countedNouns, func(noun string) bool {
		return strings.HasSuffix(name, noun) || strings.HasPrefix(name, strings.ToLower(noun[:1])+noun[1:])
	}) {
		return "", false
	}
	for _, prefix := range [...]string{"ready", "available", "healthy"} {
		if noun, ok := strings.CutPrefix(name, prefix); ok {
			return noun, false
		}
	}
	for _, prefix := range [...]string{"unavailable", "unready", "notReady", "unhealthy", "failed"} {
		if noun, ok := strings.CutPrefix(name, prefix); ok {
			return noun, true
		}
	}
	for _, suffix := range [...]string{"Ready", "Available"} {
		if noun, ok := strings.CutSuffix(name, suffix); ok {
			return strings.ToUpper(noun[:1]) + noun[1:], false
		}
	}
	return "", false
}

// desiredCount returns the desired count for a noun and the path of the field that holds it; the path is empty when no field does. The spec
// takes precedence over the status: the status counts what exists, which during a rollout is more than is desired.
func desiredCount(noun string, object, spec map[string]any, path string) (desired int64, field string) {
	lower := strings.ToLower(noun[:1]) + noun[1:]
	if noun == "ready" {
		return firstNumber(object, path, "size", "total", "desired", "replicas", "desiredNumberScheduled", "expected")
	}
	if desired, field = firstNumber(spec, "spec", lower); field != "" {
		return desired, field
	}
	if desired, field = firstNumber(object, path, "desired"+noun, "expected"+noun); field != "" {
		return desired, field
	}
	if noun == "Replicas" || noun == "Instances" || noun == "Nodes" || noun == "Members" || noun == "Pods" {
		if desired, field = firstNumber(spec, "spec", "size", "replicas", "instances", "count"); field != "" {
			return desired, field
		}
		if desired, field = desiredInNodeSets(spec); field != "" {
			return desired, field
		}
	}
	return firstNumber(object, path, lower, "total"+noun, "size")
}

// desiredInNodeSets returns the desired number of nodes of an object of Elastic's operator, whose spec lists them as sets.
func desiredInNodeSets(spec map[string]any) (desired int64, field string) {
	sets, _ := spec["nodeSets"].([]any)
	for _, item := range sets {
		set, _ := item.(map[string]any)
		if n, ok := number(set["count"]); ok && n >= 0 {
			desired, field = desired+min(n, 1<<31), "spec.nodeSets"
		}
	}
	return desired, field
}

// firstNumber returns the first of the named fields that holds a count, and its path.
func firstNumber(object map[string]any, path string, names ...string) (n int64, field string) {
	for _, name := range names {
		if n, ok := number(object[name]); ok && n >= 0 {
			return n, path + "." + name
		}
	}
	return 0, ""
}

// inspectFraction reads a string such as 2/3 in a field whose name suggests that it counts ready parts.
func (s *evidenceSearch) inspectFraction(name, at, text string) {
	lower := strings.ToLower(name)
	if !strings.Contains(lower, "ready") && !strings.Contains(lower, "replicas") && !strings.Contains(lower, "available") {
		return
	}
	left, right, _ := strings.Cut(text, "/")
	n, err := strconv.ParseUint(strings.TrimSpace(left), 10, 31)
	if err != nil {
		return
	}
	desired, err := strconv.ParseUint(strings.TrimSpace(right), 10, 31)
	if err != nil || n >= desired {
		return
	}
	s.pending(healthscope.ReasonReplicasNotReady, at+" is "+text)
}
