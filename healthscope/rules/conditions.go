package rules

import "strings"

// condition is one entry of status.conditions; the zero value stands for a condition that does not exist.
type condition struct {
	conditionType, status, reason, message string
	// generation is the observedGeneration of the condition; 0 when it has none.
	generation int64
}

// readConditions reads the conditions of the status.
func (o *object) readConditions() {
	value := o.status["conditions"]
	list, ok := value.([]any)
	if !ok && value != nil {
		o.conditionsProblem = "status.conditions is not a list"
	}
	o.conditions = conditionsOf(list)
}

// conditionsOf reads a list of conditions. It skips entries that are not conditions.
func conditionsOf(list []any) []condition {
	conditions := make([]condition, 0, len(list))
	for _, item := range list {
		entry, _ := item.(map[string]any)
		c := condition{conditionType: stringValue(entry["type"]), status: conditionStatus(entry["status"]), reason: stringValue(entry["reason"]), message: stringValue(entry["message"])}
		if c.conditionType == "" {
			continue
		}
		c.generation, _ = generationNumber(entry["observedGeneration"])
		conditions = append(conditions, c)
	}
	return conditions
}

// conditionStatus reads the status of a condition: True, False or Unknown. It accepts a boolean and any combination of upper and
// lower case, and returns other strings unchanged.
func conditionStatus(value any) string {
	switch value := value.(type) {
	case bool:
		if value {
			return "True"
		}
		return "False"
	case string:
		for _, status := range [...]string{"True", "False", "Unknown"} {
			if strings.EqualFold(value, status) {
				return status
			}
		}
		return value
	}
	return ""
}

// condition returns the condition of a type; the zero value when there is none.
func (o *object) condition(kind string) condition {
	o.requireConditions()
	return findCondition(o.conditions, kind)
}

// requireConditions reports a problem with status.conditions as a problem of the object. Rules that depend on conditions call it.
func (o *object) requireConditions() {
	if o.conditionsProblem != "" {
		o.problemf("%s", o.conditionsProblem)
	}
}

// findCondition returns the first condition of one of the types, which are in the order of preference; the zero value when there is none.
func findCondition(conditions []condition, kinds ...string) condition {
	for _, kind := range kinds {
		for _, c := range conditions {
			if c.conditionType == kind {
				return c
			}
		}
	}
	return condition{}
}

// outdated reports whether a condition belongs to an older generation than that of the object.
func (o *object) outdated(c condition) bool { return c.generation > 0 && c.generation < o.generation }

// exists reports whether the object has the condition.
func (c condition) exists() bool { return c.conditionType != "" }

// is reports whether the condition has a status: True, False or Unknown.
func (c condition) is(status string) bool { return c.exists() && c.status == status }

// hasInvalidStatus reports whether the status of the condition is none of True, False and Unknown.
func (c condition) hasInvalidStatus() bool {
	switch c.status {
	case "", "True", "False", "Unknown":
		return false
	}
	return true
}

// detail returns reason and message in one line.
func (c condition) detail() string { return join(": ", c.reason, c.message) }

// sentence describes the condition, its status, reason and message.
func (c condition) sentence() string {
	status := c.status
	if status == "" {
		status = "without status"
	}
	return join(": ", c.conditionType+" is "+status, c.detail())
}
