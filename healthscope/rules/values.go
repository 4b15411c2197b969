package rules

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// wholeNumber reads a whole number in any form that JSON decoders produce and other programs write.
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

// wholeString reads a whole number from a string.
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

// wholeFloat reads a whole number from a floating-point number. Floating-point numbers above 2^53 are not exact, and are rejected.
func wholeFloat(f float64) (int64, bool) {
	if math.Trunc(f) != f || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// generationNumber reads an observedGeneration, and reports whether it is a number. Argo Rollouts writes a string, and before version 1.0 a hash,
// which is treated as missing; 1e3 in a string is a hash too. Flux starts with -1.
func generationNumber(value any) (int64, bool) {
	if s, ok := value.(string); ok {
		n, err := strconv.ParseInt(s, 10, 64)
		return n, err == nil
	}
	return wholeNumber(value)
}

// boolean reads a boolean, which may be written as a string.
func boolean(value any) (b, ok bool) {
	switch value := value.(type) {
	case bool:
		return value, true
	case string:
		b, err := strconv.ParseBool(value)
		return b, err == nil
	}
	return false, false
}

// stringValue returns a string; empty for any other value. Use it for fields that only describe the object, of which no problem is reported.
func stringValue(value any) string {
	s, _ := value.(string)
	return s
}

// childObject returns a field that is an object; nil for any other value. Use it for fields that only describe the object.
func childObject(parent map[string]any, name string) map[string]any {
	object, _ := parent[name].(map[string]any)
	return object
}

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
