package rules

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxMessage is how many bytes a message may have.
const maxMessage = 256

// object is an object under judgement. Its accessors take a value in any form
// that makes sense, say whether it is there, and note the first one that makes
// none, so that rules need not handle errors.
type object struct {
	root, metadata, spec, status map[string]any
	// problem says what cannot be read; empty as long as all can.
	problem string
}

// read prepares an object for its rule.
func read(root map[string]any) *object {
	o := &object{root: root}
	o.metadata = o.child(root, "metadata")
	o.status = o.child(root, "status")
	o.spec, _ = root["spec"].(map[string]any)
	return o
}

// failf notes the first problem.
func (o *object) failf(format string, args ...any) {
	if o.problem == "" {
		o.problem = fmt.Sprintf(format, args...)
	}
}

// key returns the last part of a path such as status.replicas. Paths are
// written out where they are used, so that a problem can name its field.
func key(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// child returns an object within parent; nil when it is absent.
func (o *object) child(parent map[string]any, path string) map[string]any {
	switch value := parent[key(path)].(type) {
	case nil:
		return nil
	case map[string]any:
		return value
	default:
		o.failf("%s is not an object", path)
		return nil
	}
}

// children returns the objects of a list within parent; nil when it is absent.
func (o *object) children(parent map[string]any, path string) []map[string]any {
	switch value := parent[key(path)].(type) {
	case nil:
		return nil
	case []any:
		items := make([]map[string]any, 0, len(value))
		for i, item := range value {
			child, ok := item.(map[string]any)
			if !ok {
				o.failf("%s[%d] is not an object", path, i)
				return nil
			}
			items = append(items, child)
		}
		return items
	default:
		o.failf("%s is not a list", path)
		return nil
	}
}

// text returns a string within parent; empty when it is absent.
func (o *object) text(parent map[string]any, path string) string {
	switch value := parent[key(path)].(type) {
	case nil:
		return ""
	case string:
		return value
	default:
		o.failf("%s is not a string", path)
		return ""
	}
}

// flag returns a boolean within parent, which may be written as a string; false when it is absent.
func (o *object) flag(parent map[string]any, path string) bool {
	switch value := parent[key(path)].(type) {
	case nil:
		return false
	case bool:
		return value
	case string:
		if parsed, err := strconv.ParseBool(value); err == nil {
			return parsed
		}
	}
	o.failf("%s is not a boolean", path)
	return false
}

// count returns a number within parent that is whole and not negative, and whether it is there.
func (o *object) count(parent map[string]any, path string) (int64, bool) {
	value, ok := parent[key(path)]
	if !ok || value == nil {
		return 0, false
	}
	n, ok := wholeNumber(value)
	if !ok || n < 0 {
		o.failf("%s is not a whole number from 0 up", path)
		return 0, false
	}
	return n, true
}

// wholeNumber reads a number in any of the forms in which decoders and foreign writers leave one.
func wholeNumber(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case float64:
		return wholeFloat(n)
	case json.Number:
		return wholeString(string(n))
	case string:
		return wholeString(n)
	}
	return 0, false
}

// wholeString reads a number that is written out.
func wholeString(s string) (int64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, false
	}
	return wholeFloat(f)
}

// wholeFloat reads a floating-point number. Beyond 2^53 such a number is not exact.
func wholeFloat(f float64) (int64, bool) {
	if math.Trunc(f) != f || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// word returns a string that only describes, so that anything else may pass for an empty one.
func word(value any) string {
	s, _ := value.(string)
	return s
}

// condition is one entry of status.conditions.
type condition struct{ status, reason, message string }

// condition returns the condition of a type; the zero value when there is none.
func (o *object) condition(conditionType string) condition {
	conditions, _ := o.status["conditions"].([]any)
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if word(c["type"]) == conditionType {
			return condition{status: word(c["status"]), reason: word(c["reason"]), message: word(c["message"])}
		}
	}
	return condition{}
}

// is says whether the condition has a status: True, False or Unknown.
func (c condition) is(status string) bool { return c.status == status }

// detail returns reason and message in one line.
func (c condition) detail() string { return join(": ", c.reason, c.message) }

// join joins the parts that are not empty.
func join(separator string, parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		if part == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(separator)
		}
		b.WriteString(part)
	}
	return b.String()
}

// bounded makes a message valid UTF-8 of at most maxMessage bytes.
func bounded(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}
